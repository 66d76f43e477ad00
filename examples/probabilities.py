"""
Probabilities and rank sets
===========================

``probability=True`` calibrates a probability for every rank, using the held-out samples of a
cross-validation. The probabilities give the prediction with the lowest expected cost, and sets of
neighbouring ranks such as "3-4" that contain the true rank as often as you ask.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankplane import NPSVOR, set_in_words

rng = np.random.default_rng(0)
X = rng.standard_normal((6000, 4))
y = 1 + np.digitize(
    X[:, 0] + 0.5 * X[:, 1] + 0.6 * rng.standard_normal(6000), [-1.2, -0.4, 0.4, 1.2]
)
train, test = slice(0, 2000), slice(2000, 6000)
model = NPSVOR(probability=True, decision="mae").fit(X[train], y[train])

# %%
# Probabilities, the prediction, and a set that contains the true rank nine times out of ten:

probabilities = model.predict_proba(X[test])
sets = model.predict_set(X[test], coverage=0.9)
for row in range(4):
    words = set_in_words(sets[row : row + 1], model.classes_)[0]
    predicted = model.predict(X[test][row : row + 1])[0]
    print(
        f"{probabilities[row].round(2)}  predicted {predicted}  set {words:4} true {y[test][row]}"
    )

# %%
# Both can be checked on test data. Left: among the cases where a rank was predicted with a
# probability of, say, 30 %, it should be the true one in 30 %. Right: the fraction of sets that
# contain the true rank should be the coverage that was asked for.

is_rank = y[test][:, None] == model.classes_
bins = np.digitize(probabilities, np.linspace(0, 1, 11)[1:-1])
said = np.array([probabilities[bins == b].mean() for b in range(10) if np.any(bins == b)])
found = np.array([is_rank[bins == b].mean() for b in range(10) if np.any(bins == b)])
asked = np.linspace(0.5, 0.98, 13)
held, sizes = [], []
for coverage in asked:
    members = model.predict_set(X[test], coverage=coverage)
    held.append(members[is_rank].mean())
    sizes.append(members.sum(axis=1).mean())

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
left.plot([0, 1], [0, 1], color="grey", linewidth=1)
left.plot(said, found, "o-")
left.set(title="Probabilities", xlabel="predicted probability", ylabel="observed frequency")
right.plot([0.5, 1], [0.5, 1], color="grey", linewidth=1)
right.plot(asked, held, "o-")
for coverage, share, size in list(zip(asked, held, sizes, strict=True))[::4]:
    right.annotate(
        f"{size:.1f} ranks", (coverage, share), xytext=(6, -14), textcoords="offset points"
    )
right.set(
    title="Rank sets", xlabel="requested coverage", ylabel="observed coverage", xlim=(0.48, 1.08)
)
plt.show()
