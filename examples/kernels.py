"""
Kernels on a table
==================

In tables with a few numeric features, the ranks often depend on them in a nonlinear way, and a
plane is not enough. Every model takes ``kernel="rbf"``, and :class:`~rankplane.CSearchCV` searches
gamma as well as C.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankplane import NPSVOR, ColumnEncoder, CSearchCV
from rankplane.metrics import mean_absolute_error

# %%
# Patients: the risk is lowest for a medium body mass index and grows with age, more steeply for
# smokers. :class:`~rankplane.ColumnEncoder` standardises the numbers and one-hot encodes the
# categories.

rng = np.random.default_rng(0)
n = 600
patients = {
    "age": rng.uniform(20, 80, n).round(),
    "bmi": rng.uniform(16, 40, n).round(1),
    "smoker": rng.choice(["no", "yes"], n),
}
danger = ((patients["bmi"] - 26) / 6) ** 2 + (patients["age"] - 50) / np.where(
    patients["smoker"] == "yes", 12, 20
)
risk = 1 + np.digitize(danger + 0.3 * rng.standard_normal(n), [-0.5, 1, 2.5])
encoder = ColumnEncoder()
X = encoder.fit_transform(patients)
train, test = slice(0, 400), slice(400, n)

# %%
# The search computes one kernel matrix per value of gamma, for all folds and all values of C.

linear = CSearchCV(NPSVOR()).fit(X[train], risk[train])
rbf = CSearchCV(NPSVOR(kernel="rbf"), Cs=[1, 4, 16], gammas=[0.1, 0.3, 1.0]).fit(
    X[train], risk[train]
)
errors = {
    name: mean_absolute_error(risk[test], model.predict(X[test]))
    for name, model in (("linear", linear), ("rbf", rbf))
}
print(errors, rbf.best_params_)

# %%
# What the two models have learnt about smokers:

age_grid, bmi_grid = np.meshgrid(np.linspace(20, 80, 120), np.linspace(16, 40, 120))
grid = encoder.transform(
    {"age": age_grid.ravel(), "bmi": bmi_grid.ravel(), "smoker": ["yes"] * age_grid.size}
)
smokes = patients["smoker"] == "yes"
figure, axes = plt.subplots(1, 2, figsize=(9, 4), sharey=True, layout="constrained")
for axis, (name, model) in zip(axes, (("linear", linear), ("rbf", rbf)), strict=True):
    regions = model.predict(grid).reshape(age_grid.shape)
    axis.contourf(age_grid, bmi_grid, regions, levels=np.arange(0.5, 5), cmap="viridis", alpha=0.35)
    axis.scatter(
        patients["age"][smokes],
        patients["bmi"][smokes],
        c=risk[smokes],
        cmap="viridis",
        edgecolor="white",
        s=24,
    )
    axis.set(title=f'kernel="{name}", test MAE {errors[name]:.2f}', xlabel="age")
axes[0].set_ylabel("body mass index")
plt.show()
