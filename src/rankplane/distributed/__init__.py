"""Fits on the rows of many workers."""

from rankplane.distributed.checkpoint import Checkpoint, FitInterruptedError
from rankplane.distributed.comm import Comm, PeerLostError, Threads
from rankplane.distributed.report import Round
from rankplane.distributed.text import fit_vectorizer
from rankplane.distributed.worker import fit_shard

__all__ = ["Checkpoint", "Comm", "FitInterruptedError", "PeerLostError", "Round", "Threads", "fit_shard", "fit_vectorizer"]
