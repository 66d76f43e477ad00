"""
Skewed ranks
============

When most samples have the same rank, a model that hardly ever answers with a rare rank has a low error. The macro MAE counts every
rank the same and shows it; ``class_weight`` and a cost matrix are two ways to do something about it.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankplane import NPSVOR
from rankplane.metrics import macro_mean_absolute_error, mean_absolute_error

# %%
# Two samples out of three have the highest rank.

rng = np.random.default_rng(0)
X = rng.standard_normal((4000, 5))
y = 1 + np.digitize(X[:, 0] + 0.7 * rng.standard_normal(4000), [-2.2, -1.6, -1.1, -0.6])
train, test = slice(0, 2000), slice(2000, 4000)
shares = np.bincount(y)[1:] / len(y)
print(dict(zip(range(1, 6), shares.round(2).tolist(), strict=True)))

# %%
# - *plain*: every sample counts the same.
# - *balanced planes*: ``class_weight="balanced"`` gives rare ranks more weight when the planes are trained.
# - *balanced costs*: the planes stay, and calibrated probabilities choose the rank whose expected cost is least. An error on a rank
#   costs in inverse proportion to its share.

distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
models = {
    "plain": NPSVOR(),
    "balanced planes": NPSVOR(class_weight="balanced"),
    "balanced costs": NPSVOR(probability=True, decision=distance / shares[:, None]),
}
answers = {name: model.fit(X[train], y[train]).predict(X[test]) for name, model in models.items()}
macro = {name: macro_mean_absolute_error(y[test], answer) for name, answer in answers.items()}
for name, answer in answers.items():
    print(f"{name:16}  MAE {mean_absolute_error(y[test], answer):.2f}   macro MAE {macro[name]:.2f}")

# %%
# What each way does to each rank: the rare ranks gain and the common one pays.

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for offset, (name, answer) in zip((-0.27, 0, 0.27), answers.items(), strict=True):
    errors = [np.abs(answer - y[test])[y[test] == rank].mean() for rank in range(1, 6)]
    axis.bar(np.arange(1, 6) + offset, errors, width=0.25, label=f"{name}, macro MAE {macro[name]:.2f}")
axis.set(xlabel="true rank", ylabel="MAE", xticks=range(1, 6))
axis.set_xticklabels([f"{rank}\n{share:.0%} of samples" for rank, share in zip(range(1, 6), shares, strict=True)])
axis.legend(frameon=False)
plt.show()
