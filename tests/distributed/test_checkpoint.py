"""The error of a lost worker travels between processes with its checkpoint."""

import pickle

import numpy as np

from rankplane.distributed import Checkpoint, FitInterruptedError


def test_checkpoint_survives_pickling():
    checkpoint = Checkpoint({"round": 3}, None, np.arange(4.0), None, np.array([True, False]))
    error = pickle.loads(pickle.dumps(FitInterruptedError("Worker 2 is gone.", checkpoint)))
    assert str(error) == "Worker 2 is gone."
    assert isinstance(error, ConnectionError)
    assert error.checkpoint.common == {"round": 3}
    assert error.checkpoint.duals.tolist() == [0, 1, 2, 3]
    assert error.checkpoint.is_held.tolist() == [True, False]


def test_there_may_be_nothing_to_go_on_from():
    assert pickle.loads(pickle.dumps(FitInterruptedError("Worker 2 is gone.", None))).checkpoint is None
