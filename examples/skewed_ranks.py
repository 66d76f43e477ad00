"""
Skewed ranks
============

When most samples have the same rank, a model that hardly ever predicts a rare rank can still have a
low error. The macro MAE, which gives every rank the same weight, reveals this. ``class_weight`` and
a cost matrix are two ways to improve it.
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
# - *plain*: every sample has the same weight.
# - *balanced planes*: ``class_weight="balanced"`` gives rare ranks a larger weight in training.
# - *balanced costs*: the planes stay the same, and the rank with the lowest expected cost is
#   predicted from calibrated probabilities. Errors on a rank cost more, the rarer it is.

distance = np.abs(np.subtract.outer(np.arange(5), np.arange(5)))
models = {
    "plain": NPSVOR(),
    "balanced planes": NPSVOR(class_weight="balanced"),
    "balanced costs": NPSVOR(probability=True, decision=distance / shares[:, None]),
}
predictions = {
    name: model.fit(X[train], y[train]).predict(X[test]) for name, model in models.items()
}
macro = {
    name: macro_mean_absolute_error(y[test], predicted) for name, predicted in predictions.items()
}
for name, predicted in predictions.items():
    mae = mean_absolute_error(y[test], predicted)
    print(f"{name:16}  MAE {mae:.2f}   macro MAE {macro[name]:.2f}")

# %%
# The effect on each rank: the rare ranks improve, at the expense of the most frequent one.

figure, axis = plt.subplots(figsize=(7, 3.8), layout="constrained")
for offset, (name, predicted) in zip((-0.27, 0, 0.27), predictions.items(), strict=True):
    errors = [np.abs(predicted - y[test])[y[test] == rank].mean() for rank in range(1, 6)]
    axis.bar(
        np.arange(1, 6) + offset, errors, width=0.25, label=f"{name}, macro MAE {macro[name]:.2f}"
    )
axis.set(xlabel="true rank", ylabel="MAE", xticks=range(1, 6))
axis.set_xticklabels(
    [f"{rank}\n{share:.0%} of samples" for rank, share in zip(range(1, 6), shares, strict=True)]
)
axis.legend(frameon=False)
plt.show()
