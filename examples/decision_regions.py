"""
Decision regions of both rankers
================================

:class:`~rankplane.NPSVOR` has one plane through each rank. Two rules turn the scores ``f_k`` of a
sample into a rank: *ordered*, the default, counts the boundaries ``f_k + f_{k+1} > 0`` that the
sample is above; *nearest* chooses the plane with the smallest ``|f_k|``.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankplane import NPSVOR

# %%
# Four ranks lie roughly along a line and spread in different directions. The planes are not
# parallel, because each has its own weights.

rng = np.random.default_rng(0)
centres = np.array([[-3.0, -1.0], [-1.0, 1.0], [1.5, 0.5], [3.5, 2.5]])
spreads = np.array([[0.5, 1.0], [0.6, 0.5], [0.5, 0.9], [0.9, 0.4]])
y = np.repeat([1, 2, 3, 4], 60)
X = centres[y - 1] + spreads[y - 1] * rng.standard_normal((len(y), 2))

# %%
# The planes (dashed) are the same on both sides; only the rule differs. Far from the data, where
# planes cross, the nearest plane can belong to a distant rank: on the right, rank 4 reappears in
# the upper left corner. The ordered rule has no such islands here.

x_grid, y_grid = np.meshgrid(np.linspace(-8, 8, 300), np.linspace(-8, 8, 300))
points = np.column_stack([x_grid.ravel(), y_grid.ravel()])
figure, axes = plt.subplots(1, 2, figsize=(9, 4.2), sharey=True, layout="constrained")
regions = {}
for axis, ranker in zip(axes, ("ordered", "nearest"), strict=True):
    model = NPSVOR(C=1, ranker=ranker).fit(X, y)
    regions[ranker] = model.predict(points).reshape(x_grid.shape)
    axis.contourf(
        x_grid, y_grid, regions[ranker], levels=np.arange(0.5, 5), cmap="viridis", alpha=0.35
    )
    scores = model.plane_scores(points)
    for plane in range(4):
        axis.contour(
            x_grid,
            y_grid,
            scores[:, plane].reshape(x_grid.shape),
            levels=[0],
            colors="black",
            linestyles="dashed",
        )
    axis.scatter(*X.T, c=y, cmap="viridis", edgecolor="white", s=28)
    axis.set(title=f'ranker="{ranker}"', xlabel="first feature", xlim=(-8, 8), ylim=(-8, 8))
axes[0].set_ylabel("second feature")
plt.show()

# %%
# On the data itself, the two rules rarely disagree:

ordered, nearest = (
    NPSVOR(C=1, ranker=ranker).fit(X, y).predict(X) for ranker in ("ordered", "nearest")
)
print(f"{np.mean(ordered == nearest):.1%} of the training samples get the same rank from both")
