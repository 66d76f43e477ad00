"""A whole fit from files on disk: two passes, then sweeps over blocks; what an interruption leaves, the next call goes on from."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from rankplane.base import OrdinalModel
from rankplane.distributed.checkpoint import Checkpoint
from rankplane.distributed.comm import Alone
from rankplane.distributed.report import Round
from rankplane.distributed.worker import Fit, share_to_hold_out
from rankplane.files import replacing
from rankplane.inputs.reading import InputError
from rankplane.out_of_core import found
from rankplane.out_of_core.folder import Folder, key_of
from rankplane.out_of_core.memory import Plan, size_of
from rankplane.out_of_core.passes import Counted, Layout, Source, first_pass, second_pass
from rankplane.progress import ProgressBar, ignore
from rankplane.search import CSearchCV
from rankplane.solver.blocks import Blocks
from rankplane.solver.training_set import HeldOut
from rankplane.text import TextVectorizer

STATE, SCORES = "fit.json", "fit-scores.npz"
DISK = 5  # bytes for each byte of the files, at most: counts of n-grams, or rows and the blocks that they are gathered in
OnRound = Callable[[Round], Any]


@dataclass(frozen=True)
class Work:
    """What is to be fitted, and in how much memory."""

    source: Source
    model: Callable[[NDArray[Any]], Any]  # of the labels: a model, or a search over C
    settings: Any  # whatever it depends on besides
    estimator: OrdinalModel  # such as it will be
    vectorizer: TextVectorizer | None
    memory: int
    holdout: float = 0.0  # share of the rows to test on, if they fit into the memory
    sweeps: int | None = None
    max_rounds: int = 100
    on_round: OnRound | None = None
    verbose: int = 0

    def key(self) -> str:
        """Whatever changes the result."""
        params = None if self.vectorizer is None else self.vectorizer.get_params()
        fixed = None if params is None else sorted((name, repr(params[name])) for name in params.keys() - {"n_jobs", "verbose"})
        source = (self.source.inputs, self.source.dialect, self.source.seed)
        return key_of(self.source.files, source, self.settings, fixed, self.memory, self.holdout, self.sweeps, self.max_rounds)

    def run(self, folder: Folder) -> tuple[Any, Counted]:
        """The fitted model, and what the first pass has found."""
        folder.open(self.key())
        n_bytes = size_of(self.source.files)
        if "plan" not in folder.state:
            folder.state["plan"] = vars(Plan.of(self.memory, n_bytes))
            folder.check_space(DISK * n_bytes)
            folder.save()
        plan = Plan(**folder.state["plan"])
        with ProgressBar(bool(self.verbose)) as bar:
            counted, share = self._count(folder, plan, n_bytes, bar)
            model = self.model(counted.labels)
            layout = self._layout(plan, counted, isinstance(model, CSearchCV))
            if not folder.state.get("has_blocks"):
                blocks = second_pass(self.source, folder, plan, counted, layout, share, bar.phase("Writing blocks", 1.0))
                folder.state["has_blocks"] = True
                folder.save()
            else:
                blocks = Blocks.open(folder.path)
            return self._fit(model, folder, blocks, counted, layout, bar), counted

    def _count(self, folder: Folder, plan: Plan, n_bytes: int, bar: ProgressBar) -> tuple[Counted, float]:
        share = min(self.holdout, plan.test_bytes / max(n_bytes, 1))
        counted = found.load(folder)
        if counted is None:
            vectorizer = None if self.vectorizer is None else clone(self.vectorizer)
            n_lanes = self.estimator._table(self._guess_ranks()).shape[2]
            most = plan.most_columns(n_lanes)
            counted = first_pass(self.source, folder, plan, vectorizer, share, most, bar.phase("Counting", 1.0))
            found.save(counted, folder)
            folder.save()
        return counted, share

    def _guess_ranks(self) -> int:
        """How many ranks there are, by the first rows."""
        if self.source.inputs.ranks is not None:
            return len(self.source.inputs.ranks)
        first = next(iter(self.source.chunks(1, None)))
        return max(2, len(np.unique(first.labels)))

    def _layout(self, plan: Plan, counted: Counted, is_search: bool) -> Layout:
        n_ranks = len(self.source.inputs.ranks or np.unique(counted.labels))
        if n_ranks < 2:
            raise InputError(f'The files must hold at least two different ranks in column "{self.source.inputs.target}".')
        n_rows = len(counted.labels)
        share = share_to_hold_out(self.estimator, is_search, None, n_rows, n_ranks, 1)
        n_lanes = self.estimator._table(n_ranks).shape[2]
        entries = plan.block_entries(counted.n_columns, n_rows, n_lanes)
        return Layout.of(counted.keys, share, counted.n_entries, entries, self.source.seed)

    def _fit(self, model: Any, folder: Folder, blocks: Blocks, counted: Counted, layout: Layout, bar: ProgressBar) -> Any:
        move = bar.phase("Fitting") or ignore
        order = layout.order

        def note(report: Round) -> None:
            save(fit.checkpoint(), folder)
            move(report.number, str(report))
            if self.on_round is not None:
                self.on_round(report)

        labels, is_held = counted.labels[order], layout.is_held[order]
        fit = Fit.of(model, blocks, labels, Alone(), None, self.sweeps, self.max_rounds, None, note)
        fit.start_from(load(folder, blocks, fit, is_held))
        return fit.run()


def save(checkpoint: Checkpoint | None, folder: Folder) -> None:
    """Keep what is needed to go on but the duals, which are in files of their own."""
    assert checkpoint is not None
    best = checkpoint.held_out
    if best is not None:
        arrays = {"scores": best.scores[0], "ranks": best.ranks[0]}
        with replacing(folder.path / SCORES) as file:
            np.savez(file, allow_pickle=False, **arrays)
    files = {"duals": name_of(checkpoint.duals), "best": name_of(checkpoint.best_duals)}
    folder.write_json(STATE, {"common": checkpoint.common} | files)


def name_of(duals: Any) -> list[Any] | None:
    """The file of mapped duals, and their shape."""
    filename = getattr(duals, "filename", None)
    return None if filename is None else [Path(filename).name, list(duals.shape)]


def load(folder: Folder, blocks: Blocks, fit: Fit, is_held: Any) -> Checkpoint:
    """What the last call has left; at least which rows are held out."""
    state = folder.read_json(STATE)
    if state is None:
        return Checkpoint(None, None, None, None, is_held)

    def mapped(named: list[Any] | None) -> Any:
        if named is None:
            return None
        path, shape = folder.path / named[0], tuple(named[1])
        if not path.exists() or path.stat().st_size != np.prod(shape) * np.dtype(blocks.dtype).itemsize:
            return None
        return np.memmap(path, mode="r+", dtype=blocks.dtype, shape=shape)

    held_out = None
    if (folder.path / SCORES).exists():
        with np.load(folder.path / SCORES) as file:
            held_out = HeldOut([file["scores"]], [file["ranks"]], None, fit.shard.labels.n_ranks)
    return Checkpoint(state["common"], held_out, mapped(state["duals"]), mapped(state["best"]), is_held)
