import os
import re
import signal
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from rankplane import KDLOR, NPSVOR, SVC, SVMOP, SVOR, SVOREX, SVR, AdversarialOrdinal, CrammerSinger, RedSVM, save_model
from terminal import Screen

pytest.register_assert_rewrite("command")
pytest_plugins = ["served"]

MODELS = [NPSVOR, SVC, SVR, SVMOP, RedSVM, SVOR, SVOREX]  # any loss, any kernel
EVERY_MODEL = [*MODELS, KDLOR, CrammerSinger, AdversarialOrdinal]


def make_ranked(n_rows=120, n_columns=30, n_ranks=4, density=0.3, seed=0, dtype=np.float64):
    """Sparse rows whose rank follows a hidden direction, with some noise."""
    rng = np.random.default_rng(seed)
    X = sp.random_array((n_rows, n_columns), density=density, rng=rng, data_sampler=rng.standard_normal).tocsr()
    X = sp.diags_array(1 / np.maximum(np.sqrt(X.multiply(X).sum(axis=1)), 1e-9)) @ X  # rows of length one, as TF-IDF gives
    hidden = X @ rng.standard_normal(n_columns) + 0.3 * rng.standard_normal(n_rows)
    y = 1 + np.searchsorted(np.quantile(hidden, np.arange(1, n_ranks) / n_ranks), hidden)
    X = sp.csr_matrix(X, dtype=dtype)
    X.sort_indices()
    return X, y


def make_curved(n_rows=90, n_columns=3, n_ranks=4, seed=0, dtype=np.float64):
    """Dense rows whose rank no plane can tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns)).astype(dtype)
    hidden = np.square(X[:, 0]) - X[:, 1] + 0.2 * rng.standard_normal(n_rows)
    return X, 1 + np.searchsorted(np.quantile(hidden, np.arange(1, n_ranks) / n_ranks), hidden)


def words(value):
    """A parameter in the name of a test, without the addresses of functions, which differ from process to process."""
    return re.sub(r" at 0x[0-9a-f]+", "", str(value))


@pytest.fixture(params=EVERY_MODEL, ids=lambda model: model.__name__)
def model(request):
    return request.param


@pytest.fixture
def ranked():
    return make_ranked()


@pytest.fixture
def curved():
    return make_curved()


@pytest.fixture
def saved(tmp_path):
    """The file of a small model."""
    path = tmp_path / "m.rankplane"
    save_model(NPSVOR().fit(*make_ranked()), path)
    return path


@pytest.fixture(scope="session")
def data_folder():
    folder = Path(os.environ.get("RANKPLANE_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no folder {folder} with the real data sets; set RANKPLANE_DATA to one")
    return folder


@pytest.fixture
def answers_to_ctrl_c():
    """A process started in the background is deaf to Ctrl-C, and so are its children, until told otherwise."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def terminal(monkeypatch, capsys):
    """A function that tells what standard error has shown since the last call, were it a terminal."""
    for name, value in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    return lambda: Screen(capsys.readouterr().err)
