"""What parameters and attributes of the models mean, each written once, and the decorator that puts it into their docstrings."""

import inspect
from dataclasses import dataclass
from typing import TypeVar, cast, dataclass_transform

Model = TypeVar("Model", bound=type)

# One description per parameter, whichever models have it. `model` joins them with the defaults of the signature.
PARAMETER_DOCS = {
    "C": "Price of a violated demand, per row. Larger fits the training rows more closely.",
    "C1": "Price for rows of a plane's own rank, instead of ``C``.",
    "C2": "Price for rows of the other ranks, instead of ``C``.",
    "epsilon": "How far from its target a score may be at no price.",
    "loss": "``'hinge'`` charges violations linearly, ``'squared_hinge'`` by their square.",
    "ranker": "How scores become ranks: ``'ordered'`` counts the boundaries ``f_k + f_{k+1} > 0``, ``'nearest'`` takes the plane "
    "of smallest ``|f_k|``.",
    "fit_intercept": "Give each plane a bias, penalised like the weight of a column of ones.",
    "ranks": "The labels, lowest first. Needed for text labels, whose alphabetical order would mean nothing; numbers are sorted, "
    "an ordered categorical brings its order. Ranks that do not occur in the training data are allowed.",
    "class_weight": "Factors on ``C`` by label, or ``'balanced'`` for factors inversely proportional to frequency.",
    "solver": "``'dcd2'`` has one dual variable per row and plane; ``'dcd1'``, the paper's Algorithm 1, splits those of a plane's "
    "own rank in two. Same optimum; kept for comparison.",
    "probability": "Also train planes on folds of the rows, in the same solve, and calibrate probabilities on held-out rows.",
    "decision": "What ``predict`` answers with: ``'ranker'``, the rule of the model, or with ``probability=True`` the rank of "
    "least expected cost: ``'mae'`` (median), ``'mse'`` (mean), ``'accuracy'`` (mode), or a matrix ``cost[true, answered]``.",
    "tol": "A plane is done when the violations of a sweep sum to ``tol`` times those of the first sweep; with a kernel, when "
    "its duality gap is at most ``tol**2`` times its objective.",
    "max_iter": "Most sweeps over the data; with a kernel, as many steps as rows are a sweep.",
    "shrinking": "Leave out rows that look settled, and look at them again before the end.",
    "n_jobs": "Threads. The result depends on their number, but not on their timing: the same number gives the same bits.",
    "random_state": "Seed of the order in which rows are visited. ``None`` is a fixed seed.",
    "verbose": "1 shows a progress bar.",
    "column_weight": "``'ranks'`` penalises columns less that tell the ranks apart, which predicts better from texts; or a factor "
    "per column, by which X is multiplied. ``coef_`` is for X as it is given.",
    "kernel": "``'linear'`` keeps weights and has no limit on rows; ``'rbf'``, ``'poly'``, ``'sigmoid'``, a callable of two sets "
    "of rows that returns their kernel matrix, or ``'precomputed'``, where X is that matrix, keep training rows, as scikit-learn's "
    "SVC does.",
    "gamma": "Of ``'rbf'``, ``'poly'`` and ``'sigmoid'``: a number, ``'scale'`` for one over columns times variance of X, "
    "``'auto'`` for one over columns.",
    "degree": "Of ``'poly'``.",
    "coef0": "What ``'poly'`` and ``'sigmoid'`` add to the inner product.",
    "cache_size": "Megabytes for rows of the kernel matrix.",
}
ATTRIBUTE_DOCS = """
    Attributes
    ----------
    classes_ : ndarray of shape (n_ranks,)
        The labels in rank order.
    coef_ : ndarray of shape (n_planes, n_columns)
        Weights; a single row for models with one direction. Linear models only.
    support_, support_vectors_, dual_coef_ :
        With a kernel, in place of weights: which training rows any plane rests on, these rows, and how much of each one's kernel
        function every plane consists of, shape (n_planes, n_support). ``precomputed`` keeps no rows.
    gamma_ : float
        With a kernel that has one, the number that ``gamma`` stands for.
    intercept_ : ndarray
        One bias per plane; for threshold models, one per boundary.
    calibrator_, conformity_ :
        With ``probability=True``, what turns scores into probabilities, and what rank sets are cut by.
    n_iter_, dual_objective_, duality_gap_, n_support_ : ndarray of shape (n_planes,)
        Sweeps made; minimum of the dual, with the bias inside ``w``; how far at most the objective is from its optimum; rows whose
        dual variable is not zero.
"""


@dataclass_transform(kw_only_default=True)
def model(cls: Model) -> Model:
    """Make a class with annotated defaults an estimator: an ``__init__`` that stores them, and a docstring that lists them."""
    cls = cast(Model, dataclass(eq=False, repr=False, kw_only=True)(cls))
    lines = ["", "    Parameters", "    ----------"]
    for name, parameter in inspect.signature(cls).parameters.items():
        lines += [f"    {name} : default={parameter.default!r}", f"        {PARAMETER_DOCS[name]}"]
    summary, example = (cls.__doc__ or "").split("    Examples\n", 1)
    cls.__doc__ = summary.rstrip() + "\n" + "\n".join(lines) + "\n" + ATTRIBUTE_DOCS + "\n    Examples\n" + example
    return cls
