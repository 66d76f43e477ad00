"""What is left of a fit when a worker is lost, and the error that carries it."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankplane.docstrings import documented
from rankplane.solver.training_set import HeldOut


@documented()
@dataclass(frozen=True)
class Checkpoint:
    """What a worker needs to go on with a fit that was interrupted. It can be pickled; its contents are internal.

    Parameters
    ----------
    common : dict
        What all workers know, such as the settings tried so far. None before the first round.
    held_out : object
        The held-out samples of all workers, at the best setting so far. None before there is one.
    duals : ndarray
        The dual variables of this worker's samples. None before the first round.
    best_duals : ndarray
        The same at the best setting so far.
    is_held : ndarray of bool
        Which of this worker's samples are held out.

    See Also
    --------
    FitInterruptedError : Has the checkpoint of a fit.
    fit_shard : Goes on from a checkpoint.

    Examples
    --------
    >>> from rankplane.distributed import Checkpoint, FitInterruptedError
    >>> error = FitInterruptedError("Worker 3 is gone.", Checkpoint(None, None, None, None, [False]))
    >>> error.checkpoint.is_held
    [False]
    """

    common: dict[str, Any] | None
    held_out: HeldOut | None
    duals: NDArray[Any] | None
    best_duals: NDArray[Any] | None
    is_held: NDArray[np.bool_]


@documented()
class FitInterruptedError(ConnectionError):
    """Another worker is gone, and the fit has ended.

    Parameters
    ----------
    message : str
        What has happened.
    checkpoint : Checkpoint
        What :func:`fit_shard` needs to go on. None if there is nothing to go on from.

    See Also
    --------
    fit_shard : Raises it, and goes on from its checkpoint.

    Examples
    --------
    >>> from rankplane.distributed import FitInterruptedError
    >>> FitInterruptedError("Worker 3 is gone.", None).checkpoint is None
    True
    """

    def __init__(self, message: str, checkpoint: Checkpoint | None) -> None:
        super().__init__(message)
        self.checkpoint = checkpoint

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.checkpoint)
