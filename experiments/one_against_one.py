"""A plane for every pair of ranks, as LIBSVM classifies: ranks of other pairs ask nothing of it, and every plane has a vote.

The paper does not say how its SVC with a kernel tells more than two ranks apart. With a kernel it is likely LIBSVM's, whose answer
differs from one against the rest, so both stand in the table.
"""

import itertools

import numpy as np

from rankplane.base import OrdinalModel
from rankplane.docstrings import model
from rankplane.prediction.rankers import Ranks, Scores
from rankplane.solver import tables
from rankplane.solver.tables import N_FIELDS, Table


def pairs(n_ranks: int) -> list[tuple[int, int]]:
    return list(itertools.combinations(range(n_ranks), 2))


@model
class PairwiseSVC(OrdinalModel):
    """Support vector classification, one rank against one other, by vote; of equal votes the lowest rank's count.

    Examples
    --------
    >>> import numpy as np
    >>> from experiments.one_against_one import PairwiseSVC
    >>> PairwiseSVC(C=10, tol=1e-3).fit(np.array([[1.0], [2.0], [3.0]]), [1, 2, 3]).predict([[1.0], [3.0]])
    array([1, 3])
    """

    free_offsets = True

    def _table(self, n_ranks: int) -> Table:
        table = np.zeros((n_ranks, 1, len(pairs(n_ranks)), N_FIELDS))
        for plane, (low, high) in enumerate(pairs(n_ranks)):
            table[low, 0, plane] = tables.be_below(-1.0, self.C, self.loss)
            table[high, 0, plane] = tables.be_above(1.0, self.C, self.loss)
        return table

    def _rank(self, plane_scores: Scores, n_ranks: int) -> Ranks:
        votes = np.zeros((len(plane_scores), n_ranks), dtype=np.intp)
        for plane, (low, high) in enumerate(pairs(n_ranks)):
            is_high = plane_scores[:, plane] > 0
            votes[:, high] += is_high
            votes[:, low] += ~is_high
        return np.asarray(np.argmax(votes, axis=1))
