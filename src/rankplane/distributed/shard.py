"""One worker's rows, with what only all workers together know: ranks, columns, counts, weights."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike, NDArray

from rankplane import validation
from rankplane.base import OrdinalModel, check_decision, options_of
from rankplane.distributed.comm import Comm, gather_values, share, together
from rankplane.labels import Labels, check_enough_ranks
from rankplane.parameters import check_parameters
from rankplane.solver import blocks
from rankplane.solver.column_weights import counts_by_rank, squared_lengths, weights_of_counts
from rankplane.solver.kernels import is_linear
from rankplane.solver.lanes import Options


@dataclass(frozen=True)
class Shard:
    """The checked rows of a worker, of which there may be none."""

    X: Any
    labels: Labels
    rank_counts: NDArray[np.intp]  # of all workers
    table_rows: NDArray[np.int32]
    row_weights: NDArray[np.float64] | None
    sample_weights: NDArray[np.float64] | None
    column_weight: Any
    options: Options

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    @property
    def n_copies(self) -> int:
        """Visits of each row."""
        return len(self.table_rows) // self.n_rows if self.n_rows else 1

    @property
    def n_rows_of_all(self) -> int:
        return int(self.rank_counts.sum())

    @property
    def learns_column_weights(self) -> bool:
        return isinstance(self.column_weight, str)

    def column_counts(self, comm: Comm) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """In how many rows each column is not zero: of this worker, of all; and how many workers have such rows."""
        own = blocks.sum_by_column(self.X, count_rows)
        everywhere = comm.allreduce(np.stack([own, (own > 0).astype(np.int64)]))
        return own, everywhere[0], everywhere[1]

    def weights_of_columns(self, comm: Comm, is_used: NDArray[np.bool_]) -> NDArray[Any] | None:
        """Factors of the columns; those that are learnt come from the used rows of all workers."""
        if not self.learns_column_weights:
            return None if self.column_weight is None else np.asarray(self.column_weight)
        if self.row_weights is not None:
            is_used = is_used & (self.row_weights > 0)
        numbers, n_ranks = self.labels.numbers, self.labels.n_ranks

        def of_ranks(X: Any, rows: slice) -> NDArray[np.float64]:
            return counts_by_rank(X, numbers[rows], n_ranks, is_used[rows])

        counts = comm.allreduce(blocks.sum_by_column(self.X, of_ranks))
        squares = comm.allreduce(blocks.sum_by_column(self.X, lambda X, _: squared_lengths(X)))
        return weights_of_counts(counts, squares, self.X.dtype)

    def hold_out(self, n_wanted: float, is_held: NDArray[np.bool_] | None = None) -> NDArray[np.bool_]:
        """About this many of the rows of all workers, the same share of every rank. The first rows may be assigned already."""
        n_known = 0 if is_held is None else min(len(is_held), self.n_rows)
        found = np.zeros(self.n_rows, dtype=bool)
        if is_held is not None:
            found[:n_known] = is_held[:n_known]
        if n_wanted <= 0:
            return found
        # Every so-and-so-manieth of the rows in random order, rank by rank.
        random = np.random.default_rng(self.options.seed)
        new = n_known + random.permutation(self.n_rows - n_known)
        new = new[np.argsort(self.labels.numbers[new], kind="stable")]
        step = self.n_rows_of_all / n_wanted
        places = random.uniform(0, 1) + np.arange(len(new)) / step
        found[new[np.diff(np.floor(places), append=np.floor(places[-1:] + 1 / step)) > 0]] = True
        return found if self.sample_weights is None else found & (self.sample_weights > 0)


def read_shard(model: OrdinalModel, X: Any, y: Any, sample_weight: ArrayLike | None, comm: Comm) -> Shard:
    """Check the parameters and the rows of all workers. What one of them refuses, all refuse."""
    together(comm, lambda: check_model(model))
    rows = together(comm, lambda: None if is_empty(X) else check_rows(model, X))
    rows = with_same_columns(model, rows, comm)
    n_rows = rows.shape[0]
    labels, counts = labels_of_all(y, n_rows, model.ranks, comm)
    given = weights_of_all(sample_weight, n_rows, comm)

    def finish() -> Shard:
        check_decision(model, labels.n_ranks)
        return Shard(
            X=rows,
            labels=labels,
            rank_counts=counts,
            table_rows=model._table_rows(labels.numbers, labels.n_ranks),
            row_weights=labels.row_weights(model.class_weight, given, counts),
            sample_weights=given,
            column_weight=validation.check_column_weight(model.column_weight, rows.shape[1], rows.dtype),
            options=replace(options_of(model, rows), **model._solver_options(labels.n_ranks)),
        )

    shard = together(comm, finish)
    # Workers shuffle their rows independently, all from the seed of the first.
    seed = np.random.SeedSequence([share(comm, shard.options.seed, 0), comm.rank]).generate_state(1, np.uint64)[0]
    return replace(shard, options=replace(shard.options, seed=int(seed)))


def check_model(model: OrdinalModel) -> None:
    check_parameters(model)
    if not can_be_dealt(model):
        raise ValueError(f"model must be one that can be fitted over workers, such as NPSVOR or SVOR. Got {type(model).__name__}.")
    if not is_linear(model.kernel):
        raise ValueError(f"kernel must be 'linear' for a fit over workers. Got {model.kernel!r}.")
    if coupling := getattr(model, "coupling", 0):
        raise ValueError(f"coupling must be 0 for a fit over workers. Got {coupling!r}.")


def can_be_dealt(model: Any) -> bool:
    """Whether a solve on some of the rows makes sense by itself, so that others may be elsewhere, or on disk.

    Means of ranks and the order of thresholds are facts of all rows; the duals of joined planes depend on each other row by row.
    """
    return isinstance(model, OrdinalModel) and not model._solver_options(2).keys() - {"n_joined"}


def check_rows(model: OrdinalModel, X: Any) -> Any:
    """The rows of this worker; those on disk have been checked when they were written."""
    if not isinstance(X, blocks.Blocks):
        return model._check_rows(X, is_fit=True)
    model.n_features_in_ = X.shape[1]
    return X


def count_rows(X: Any, rows: slice) -> NDArray[np.int64]:
    """In how many of the rows, which are these of all, each column is not zero."""
    if sp.issparse(X):
        return np.bincount(X.indices, minlength=X.shape[1]).astype(np.int64)
    return np.asarray(np.count_nonzero(X, axis=0), dtype=np.int64)


def is_empty(X: Any) -> bool:
    return X is None or (hasattr(X, "shape") and X.shape[0] == 0) or (isinstance(X, list | tuple) and len(X) == 0)


def with_same_columns(model: OrdinalModel, rows: Any, comm: Comm) -> Any:
    """The rows with the columns and the type that all workers have."""
    names = getattr(model, "feature_names_in_", None)
    own = None if rows is None else [rows.shape[1], rows.dtype.str, None if names is None else [str(name) for name in names]]
    found = gather_values(comm, own)
    known = [(worker, facts) for worker, facts in enumerate(found) if facts is not None]
    if not known:
        raise ValueError("X must contain at least one sample. Got none on any worker.")
    first, (n_columns, _, names) = known[0]
    for worker, facts in known[1:]:
        if facts[0] != n_columns:
            raise ValueError(
                f"X must have the same number of features on all workers. Got {n_columns} on worker {first}, "
                f"{facts[0]} on worker {worker}."
            )
        if facts[2] != names:
            raise ValueError(f"X must have the same feature names on all workers. Those of workers {first} and {worker} differ.")
    dtype = np.result_type(*(np.dtype(facts[1]) for _, facts in known))
    if rows is None:
        rows = sp.csr_matrix((0, n_columns), dtype=dtype)
        model.n_features_in_ = n_columns
        if names is not None:
            model.feature_names_in_ = np.array(names, dtype=object)
    return rows if rows.dtype == dtype else rows.astype(dtype)


def labels_of_all(y: Any, n_rows: int, ranks: Any, comm: Comm) -> tuple[Labels, NDArray[np.intp]]:
    """The ranks of all workers, the rank numbers of these rows, and how many rows of all workers each rank has."""
    labels, distinct, counts, is_order = together(comm, lambda: distinct_labels(y, n_rows, ranks))
    own = None if n_rows == 0 else [distinct.dtype.str, distinct.tolist(), np.minimum(counts, 2).tolist(), is_order]
    known = [facts for facts in gather_values(comm, own) if facts is not None]
    if len({facts[3] for facts in known}) > 1 or (known[0][3] and any(facts[1] != known[0][1] for facts in known)):
        raise ValueError("y must have the same ordered categories on all workers. They differ.")
    dtype = np.result_type(*(np.dtype(facts[0]) for facts in known))
    if known[0][3]:
        order = np.asarray(known[0][1], dtype=dtype) if ranks is None else np.asarray(list(ranks))
    else:
        # Each label once or twice, which is all that the check of labels with fractions looks at.
        occurring = np.concatenate([np.repeat(np.asarray(facts[1], dtype=dtype), facts[2]) for facts in known])
        order = validation.rank_order(occurring, None)
    numbers = together(comm, lambda: validation.rank_numbers(labels, order) if n_rows else np.zeros(0, dtype=np.int32))
    found = Labels(order, numbers)
    all_counts = comm.allreduce(found.counts)
    check_enough_ranks(order, all_counts)
    return found, all_counts


def distinct_labels(y: Any, n_rows: int, ranks: Any) -> tuple[Any, NDArray[Any], NDArray[np.intp], bool]:
    """Labels; the distinct ones with their counts, or all ranks in their order if that is given, and whether it is."""
    if n_rows == 0:
        return None, np.zeros(0), np.zeros(0, dtype=np.intp), False
    labels = validation.as_labels(y, n_rows)
    if ranks is not None or validation.is_categorical(labels):
        order = validation.rank_order(labels, ranks)
        return labels, order, np.ones(len(order), dtype=np.intp), True
    if labels.dtype.kind in "OUST":
        labels = validation.as_numbers(labels)
    if labels.dtype.kind not in "biu":
        validation.rank_order(labels[~np.isfinite(labels)] if labels.dtype.kind == "f" else labels, None)
    return labels, *np.unique(labels, return_counts=True), False


def weights_of_all(sample_weight: ArrayLike | None, n_rows: int, comm: Comm) -> NDArray[np.float64] | None:
    """The sample weights of these rows; ones where only other workers have any."""
    own = together(comm, lambda: None if sample_weight is None or n_rows == 0 else validation.check_weights(sample_weight, n_rows))
    n_given, total = comm.allreduce(np.array([own is not None, float(n_rows) if own is None else np.sum(own)]))
    if n_given == 0:
        return None
    if total == 0:
        raise ValueError("sample_weight must be positive for at least one sample. Got only zeros.")
    return np.ones(n_rows) if own is None else own
