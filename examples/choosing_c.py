"""
Choosing C
==========

``C`` is the inverse of the regularisation strength: a small value keeps the weights small, a large
one fits the training samples more closely. :class:`~rankplane.CSearchCV` chooses it by
cross-validation. It trains all folds at once, and each value of C starts from the solution of the
last, so the whole search costs about as much as a few fits.
"""

import matplotlib.pyplot as plt
import numpy as np

from rankplane import NPSVOR, CSearchCV, TextVectorizer, datasets
from rankplane.metrics import mean_absolute_error

made = datasets.load("generated")
vectorizer = TextVectorizer()
X_train = vectorizer.fit_transform(made.texts[:1000])
X_test = vectorizer.transform(made.texts[1000:3000])
y_train, y_test = made.ranks[:1000], made.ranks[1000:3000]

# %%
# Fifteen values of C and five folds. ``scoring`` can also be "mse", "accuracy", "macro_mae", "qwk",
# "rps", or a function. The search would stop once the error has risen; ``patience=None`` tries all
# values, to draw the whole curve.

search = CSearchCV(NPSVOR(), Cs=2.0 ** np.arange(-8, 7), scoring="mae", patience=None).fit(
    X_train, y_train
)
print(f"best C {search.best_C_}, MAE in cross-validation {search.best_score_:.3f}")
print(f"test MAE {mean_absolute_error(y_test, search.predict(X_test)):.3f}")

# %%
# For large C, the error on the training samples keeps falling while the error on new samples rises:
# the model overfits. ``tol=0.1`` stops the fits early, as the paper does: that is enough for a
# picture.

Cs = np.array([setting["C"] for setting in search.cv_results_["params"]])
mean, std = search.cv_results_["mean_test_score"], search.cv_results_["std_test_score"]
models = [NPSVOR(C=C, tol=0.1).fit(X_train, y_train) for C in Cs]
figure, axis = plt.subplots(figsize=(7, 4), layout="constrained")
axis.fill_between(Cs, mean - std, mean + std, alpha=0.2, linewidth=0)
axis.plot(Cs, mean, "o-", label="cross-validation, ± one standard deviation")
axis.plot(
    Cs,
    [mean_absolute_error(y_test, model.predict(X_test)) for model in models],
    "s-",
    label="new samples",
)
axis.plot(
    Cs,
    [mean_absolute_error(y_train, model.predict(X_train)) for model in models],
    "^-",
    label="training samples",
)
axis.axvline(search.best_C_, color="grey", linewidth=1)
axis.set(xscale="log", xlabel="C", ylabel="MAE")
axis.set_ylim(bottom=0)
axis.legend(frameon=False)
plt.show()
