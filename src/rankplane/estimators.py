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
    """Nonparallel support vector ordinal regression: one plane through each rank, lower ranks below it, higher ranks above.

    The model of *A Novel Large-scale Ordinal Regression Model* (Shi, Wang, Shen, Niu).

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
    """Support vector classification, one rank against the rest; the order of the ranks is not used.

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
    """A plane through each rank (NPSVOR) and one around it (one against the rest), in one solve, heard together.

    The two see order and membership, and err differently: probabilities calibrated on the scores of both predict better than
    those of either. ``loss`` is that of the planes through the ranks; the others charge linearly. The ranker, without
    probabilities, is that of NPSVOR.

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
    """Support vector regression on the ranks, counted from 1, rounded to the nearest rank.

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
    """Ordered binary planes: one for each boundary between neighbouring ranks, each with a direction of its own.

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
    """One direction with a threshold per boundary, thresholds penalised like weights: a reduction to one binary problem.

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
    """Support vector ordinal regression with implicit constraints (Chu and Keerthi): thresholds are free of penalty.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVOR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVOR(C=10, tol=1e-3).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    free_offsets = True
