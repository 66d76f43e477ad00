"""The linear models as scikit-learn estimators.

An estimator is a table of demands (what each rank demands of each plane) and a ranker (how scores become ranks); everything else
is shared.
"""

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from rankplane.base import OrdinalModel
from rankplane.docstrings import model
from rankplane.gaussian_process import GPOR as GPOR  # so that all models are here
from rankplane.prediction import rankers
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.solver import tables
from rankplane.solver.lanes import MAX_LANES
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
    .. [1] Shi, Wang, Shen and Niu, "A Novel Large-scale Ordinal Regression Model", arXiv:1812.08237, 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import NPSVOR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> NPSVOR(C=10).fit(X, [1, 1, 2, 3]).predict([[0.5], [3.0], [9.0]])
    array([1, 2, 3])
    """

    C1: float | None = None
    C2: float | None = None
    epsilon: float = 0.1
    ranker: Literal["ordered", "nearest"] = "ordered"
    fit_intercept: bool = True
    solver: Literal["dcd2", "dcd1"] = "dcd2"
    coupling: float = 0.0

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


class LargestScore(OrdinalModel):
    """Base class of models with a plane per rank, of which the one with the highest score wins."""

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.largest(plane_scores)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return values[:, 1:] - values[:, :-1]


@model
class SVC(LargestScore):
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
    >>> SVC(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        return tables.one_against_rest(n_ranks, self.C, self.loss)


@model
class Committee(OrdinalModel):
    """The planes of NPSVOR and of SVC, trained together and combined by calibration.

    NPSVOR [1]_ models the order of the ranks, SVC which rank a sample belongs to. They make different errors, so probabilities
    calibrated on the scores of both predict better than those of either. ``loss`` applies to the planes of NPSVOR; those of SVC
    use the hinge loss. With ``decision='ranker'``, only the planes of NPSVOR are used.

    See Also
    --------
    NPSVOR : One plane through each rank.
    SVC : One plane per rank, against the rest.

    References
    ----------
    .. [1] Shi, Wang, Shen and Niu, "A Novel Large-scale Ordinal Regression Model", arXiv:1812.08237, 2018.

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
    >>> SVR(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
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
    >>> SVMOP(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    fit_intercept: bool = True
    coupling: float = 0.0

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
    >>> RedSVM(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
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
    >>> SVOR(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    free_offsets = True


@model
class SVOREX(SVOR):
    """Support vector ordinal regression with explicit constraints.

    One direction is shared by all boundaries between neighbouring ranks, each of which has a threshold. A threshold separates only
    the two ranks beside it, so that samples of other ranks do not move it; thresholds are constrained to be in order [1]_, and are
    not regularised.

    See Also
    --------
    SVOR : The same model with implicit constraints, where every threshold separates all ranks below from all above.

    References
    ----------
    .. [1] Chu and Keerthi, "Support Vector Ordinal Regression", Neural Computation 19, 2007.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import SVOREX
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> SVOREX(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    def _table(self, n_ranks: int) -> Table:
        return tables.neighbours(n_ranks, self.C, self.loss)

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        return {"ordered_offsets": True}


@model
class KDLOR(OrdinalModel):
    """Kernel discriminant learning for ordinal regression.

    One direction along which the means of neighbouring ranks are far apart, while samples stay close to the mean of their rank
    [1]_: the discriminant analysis of Fisher for ordered classes. Boundaries lie halfway between the means of neighbouring ranks.

    See Also
    --------
    SVOR : One direction found by margins instead of means and scatter.

    References
    ----------
    .. [1] Sun, Li, Wu, Zhang and Li, "Kernel Discriminant Learning for Ordinal Regression", IEEE Transactions on Knowledge and
       Data Engineering 22, 2010.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import KDLOR
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> KDLOR(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    without = ("loss", "shrinking")

    def _table(self, n_ranks: int) -> Table:
        return tables.thresholds(n_ranks, self.C, "hinge")

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        return {"is_discriminant": True}

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return rankers.count(plane_scores)


class JoinedModel(LargestScore):
    """Base class of models whose loss is the largest of several scores of a sample, so that planes depend on each other."""

    without = ("loss", "shrinking", "kernel", "gamma", "degree", "coef0", "cache_size")
    is_joined = True

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        if n_ranks > MAX_LANES:
            raise ValueError(f"y must have at most {MAX_LANES} ranks for {type(self).__name__}. Got {n_ranks}.")
        return {"n_joined": n_ranks}


@model
class CrammerSinger(JoinedModel):
    """Multiclass support vector machine of Crammer and Singer.

    Like :class:`SVC` a baseline that ignores the order of the ranks: one plane per rank, and the plane with the highest score wins.
    All planes are fitted together, so that the score of a sample's own rank exceeds all others by a margin [1]_.

    See Also
    --------
    SVC : One rank against the rest, plane by plane.
    AdversarialOrdinal : The same with the absolute error as the margin.

    References
    ----------
    .. [1] Crammer and Singer, "On the Algorithmic Implementation of Multiclass Kernel-based Vector Machines", Journal of Machine
       Learning Research 2, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import CrammerSinger
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> CrammerSinger(C=10).fit(X, [1, 1, 2, 2]).predict([[0.5], [9.0]])
    array([1, 2])
    """

    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        return tables.largest_of_others(n_ranks, self.C)


@model
class AdversarialOrdinal(JoinedModel):
    """Adversarial ordinal regression.

    Minimises the absolute error against an adversary who may choose the ranks of the training samples, as long as their features
    keep the statistics of the training data [1]_. This is a convex loss: half the largest ``score + rank`` plus half the largest
    ``score - rank``, minus the score of the true rank.

    See Also
    --------
    CrammerSinger : The same with the margin of a classifier.
    NPSVOR : One plane per rank, fitted plane by plane.

    References
    ----------
    .. [1] Fathony, Bashiri and Ziebart, "Adversarial Surrogate Losses for Ordinal Regression", NeurIPS 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from rankplane import AdversarialOrdinal
    >>> X = np.array([[1.0], [2.0], [3.0], [4.0]])
    >>> AdversarialOrdinal(C=10).fit(X, [1, 1, 2, 3]).predict([[0.5], [9.0]])
    array([1, 3])
    """

    form: Literal["planes", "thresholds"] = "planes"
    fit_intercept: bool = True

    def _table(self, n_ranks: int) -> Table:
        table = tables.adversarial if self.form == "planes" else tables.adversarial_thresholds
        return table(n_ranks, self.C)

    def _table_rows(self, rank_numbers: NDArray[np.int32], n_ranks: int) -> NDArray[np.int32]:
        return np.concatenate([rank_numbers, rank_numbers + np.int32(n_ranks)])

    def _solver_options(self, n_ranks: int) -> dict[str, Any]:
        return super()._solver_options(n_ranks) if self.form == "planes" else {}

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        return super()._rank(plane_scores, n_ranks) if self.form == "planes" else rankers.count(plane_scores)

    def _boundaries(self, values: Scores, n_ranks: int, *, is_score: bool) -> Scores:
        return super()._boundaries(values, n_ranks, is_score=is_score) if self.form == "planes" else values
