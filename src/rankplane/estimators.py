"""The linear models as scikit-learn estimators.

An estimator is a table (what each rank asks of each plane) and a ranker (how scores become ranks); everything else is shared.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankplane.base import OrdinalModel
from rankplane.docstrings import model
from rankplane.prediction import rankers
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.solver import tables
from rankplane.solver.tables import Table


@model
class NPSVOR(OrdinalModel):
    """Nonparallel support vector ordinal regression.

    One hyperplane is fitted per rank [1]_: samples of the rank lie on the plane, samples of lower ranks below it and samples of
    higher ranks above it. All planes are trained together by dual coordinate descent.

    See Also
    --------
    Committee : NPSVOR and SVC combined, with calibrated probabilities.
    SVOR : Ordinal regression with one direction and a threshold per boundary.
    CSearchCV : Choose ``C`` by cross-validation.

    References
    ----------
    .. [1] Shi, Wang, Shen and Niu, "A Novel Large-scale Ordinal Regression Model".

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import NPSVOR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> NPSVOR(C=10, tol=1e-3).fit(X, [1, 1, 2, 3]).predict([[0.5], [3.0], [9.0]])
    array([1, 2, 3])
    """

    C1: float | None = None
    C2: float | None = None
    epsilon: float = 0.1
    ranker: Literal["ordered", "nearest"] = "ordered"
    fit_intercept: bool = True
    solver: Literal["dcd2", "dcd1"] = "dcd2"

    def _table(self, n_ranks: int) -> Table:
        C1 = self.C if self.C1 is None else self.C1
        C2 = self.C if self.C2 is None else self.C2
        table = tables.npsvor_split if self.solver == "dcd1" else tables.npsvor
        return table(n_ranks, C1, C2, self.epsilon, self.loss)

    def _table_rows(self, rank_numbers: NDArray[np.int32], n_ranks: int) -> NDArray[np.int32]:
        if self.solver == "dcd1":
            return np.concatenate([rank_numbers, rank_numbers + np.int32(n_ranks)])
        return rank_numbers

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.nearest(plane_scores) if self.ranker == "nearest" else rankers.ordered(plane_scores)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values[:, :-1] + values[:, 1:]


@model
class SVC(OrdinalModel):
    """Support vector classification, one rank against the rest.

    The baseline that ignores the order of the ranks: one plane per rank separates it from all others, and the plane with the
    highest score wins. The same model as :class:`sklearn.svm.LinearSVC` [1]_.

    See Also
    --------
    NPSVOR : One plane per rank that takes the order into account.
    sklearn.svm.LinearSVC : The same model in scikit-learn.

    References
    ----------
    .. [1] Fan, Chang, Hsieh, Wang and Lin, "LIBLINEAR: A Library for Large Linear Classification", Journal of Machine Learning
       Research 9, 2008.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVC
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVC(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        return tables.one_against_rest(n_ranks, self.C, self.loss)

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.largest(plane_scores)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values[:, 1:] - values[:, :-1]


@model
class Committee(OrdinalModel):
    """The planes of NPSVOR and of SVC, trained together and combined by calibration.

    NPSVOR models the order of the ranks, SVC which rank a sample belongs to. They make different errors, so probabilities
    calibrated on the scores of both predict better than those of either. ``loss`` applies to the planes of NPSVOR; those of SVC
    use the hinge loss. With ``decision='ranker'``, only the planes of NPSVOR are used.

    See Also
    --------
    NPSVOR : One plane through each rank.
    SVC : One plane per rank, against the rest.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import Committee
    >>> X = np.linspace(0, 1, 40)[:, None]
    >>> Committee(C=10).fit(X, np.repeat([1, 2, 3, 4], 10)).predict([[0.0], [1.0]])
    array([1, 4])
    """

    loss: tables.Loss = "squared_hinge"
    probability: bool = True
    decision: Any = "mae"
    epsilon: float = 0.1
    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        through = tables.npsvor(n_ranks, self.C, self.C, self.epsilon, self.loss)
        around = tables.one_against_rest(n_ranks, self.C, "hinge")
        return np.concatenate([through, around], axis=2)

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.ordered(plane_scores[:, :n_ranks])

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values[:, : n_ranks - 1] + values[:, 1:n_ranks]


@model
class SVR(OrdinalModel):
    """Support vector regression on the rank numbers, rounded to the nearest rank.

    Ranks are numbered from 1. The same model as :class:`sklearn.svm.LinearSVR` [1]_.

    See Also
    --------
    SVOR : Also one direction, with thresholds learnt from the data.
    sklearn.svm.LinearSVR : The same model in scikit-learn.

    References
    ----------
    .. [1] Ho and Lin, "Large-scale Linear Support Vector Regression", Journal of Machine Learning Research 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVR(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    epsilon: float = 0.1
    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        return tables.regression(n_ranks, self.C, self.epsilon, self.loss)

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.rounded(plane_scores, n_ranks)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values - (np.arange(1, n_ranks) + 0.5 if is_score else 0.0)


@model
class SVMOP(OrdinalModel):
    """One binary classifier per boundary between neighbouring ranks.

    Each plane separates the ranks above a boundary from those below it and has its own direction [1]_. The predicted rank is the
    number of boundaries that a sample is above.

    See Also
    --------
    RedSVM : The same boundaries with a shared direction.
    NPSVOR : One plane per rank instead of one per boundary.

    References
    ----------
    .. [1] Waegeman and Boullart, "An Ensemble of Weighted Support Vector Machines for Ordinal Regression", International Journal
       of Computer Systems Science and Engineering 3, 2009.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVMOP
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVMOP(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        return tables.ordered_pairs(n_ranks, self.C, self.loss)

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.count(plane_scores)


@model
class RedSVM(OrdinalModel):
    """Ordinal regression reduced to one binary classification problem.

    One direction is shared by all boundaries between neighbouring ranks, each of which has a threshold. Thresholds are
    regularised like weights [1]_.

    See Also
    --------
    SVOR : The same model with thresholds that are not regularised.
    SVMOP : The same boundaries, each with its own direction.

    References
    ----------
    .. [1] Lin and Li, "Reduction from Cost-sensitive Ordinal Ranking to Weighted Binary Classification", Neural Computation 24,
       2012.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import RedSVM
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> RedSVM(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    def _table(self, n_ranks: int) -> Table:
        return tables.thresholds(n_ranks, self.C, self.loss)

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.count(plane_scores)


@model
class SVOR(RedSVM):
    """Support vector ordinal regression with implicit constraints.

    One direction is shared by all boundaries between neighbouring ranks, each of which has a threshold. Thresholds are not
    regularised [1]_.

    See Also
    --------
    RedSVM : The same model with regularised thresholds.
    NPSVOR : One plane per rank, each with its own direction.

    References
    ----------
    .. [1] Chu and Keerthi, "Support Vector Ordinal Regression", Neural Computation 19, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVOR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVOR(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    free_offsets = True
