"""Solves over blocks of rows on disk against solves of the same rows in memory."""

import itertools
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.preprocessing import normalize

from conftest import make_ranked
from rankplane import NPSVOR, SVC, SVOR, AdversarialOrdinal, CrammerSinger, CSearchCV
from rankplane.distributed import fit_shard
from rankplane.solver.blocks import Blocks, DamagedError, path_of, write_block


def in_blocks(folder, X, n_visits, n_together=4):
    """Blocks that are visited so many times in a round, some together."""
    ends = np.linspace(0, X.shape[0], n_visits * n_together + 1).astype(int)
    facts = [write_block(folder, i, X[a:b]) for i, (a, b) in enumerate(itertools.pairwise(ends))]
    Blocks(folder, facts, X.shape[1], X.dtype, n_together).save()
    return Blocks.open(folder)


@pytest.mark.parametrize(
    "model",
    [NPSVOR(), NPSVOR(column_weight="ranks", class_weight="balanced"), SVC(), SVOR(), CrammerSinger(), AdversarialOrdinal()],
    ids=str,
)
def test_planes_are_those_of_memory(model, tmp_path):
    X, y = make_ranked(n_rows=300, n_columns=200, density=0.1, seed=1)
    model.set_params(C=0.3, tol=0.05)
    apart = fit_shard(model, in_blocks(tmp_path, X, 4), y, holdout=0, max_rounds=3000)
    alone = model.set_params(tol=1e-4, max_iter=100_000).fit(X, y)
    assert apart.rounds_[-1].why_last == "gap"
    np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=5e-3)
    assert np.mean(apart.predict(X) == alone.predict(X)) > 0.95


def test_split_variables_and_weights_of_zero(tmp_path):
    X, y = make_ranked(n_rows=200, n_columns=100, seed=3)
    weights = np.random.default_rng(0).integers(0, 3, len(y)).astype(float)
    model = NPSVOR(tol=0.05, C=0.1, solver="dcd1", fit_intercept=False)
    apart = fit_shard(model, in_blocks(tmp_path, X, 3), y, sample_weight=weights, holdout=0, max_rounds=3000)
    alone = model.set_params(tol=1e-4, max_iter=100_000).fit(X, y, weights)
    np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=5e-3)


@settings(max_examples=8, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 9), st.sampled_from(["hinge", "squared_hinge", "logistic"]))
def test_rounds_never_lower_the_objective(tmp_path_factory, seed, n_blocks, loss):
    X, y = make_ranked(n_rows=60, n_columns=30, seed=seed)
    order = np.argsort(y, kind="stable")  # blocks of one rank each, which is as bad as it gets
    blocks = in_blocks(tmp_path_factory.mktemp("blocks"), X[order], n_blocks)
    found = fit_shard(NPSVOR(tol=0.2, loss=loss), blocks, y[order], holdout=0, max_rounds=500)
    objectives = [one.objective for one in found.rounds_]
    assert np.all(np.diff(objectives) <= 1e-6 * np.abs(objectives[:-1]))
    assert found.rounds_[-1].gap <= 0.04


def test_the_gap_closes_as_in_memory(tmp_path):
    """Blocks that are always alone keep their share of the offsets for hundreds of rounds."""
    X, y = make_ranked(n_rows=4000, n_columns=3000, density=0.02, seed=2, dtype=np.float32)
    X = normalize(abs(X))
    apart = fit_shard(NPSVOR(random_state=0), in_blocks(tmp_path, X, 10, 16), y)
    alone = NPSVOR(random_state=0).fit(X, y)
    assert apart.rounds_[-1].why_last == "gap"
    assert len(apart.rounds_) < 20
    assert np.all(apart.duality_gap_ <= 0.002 * np.abs(apart.dual_objective_))
    np.testing.assert_allclose(apart.dual_objective_, alone.dual_objective_, rtol=2e-3)
    assert np.mean(apart.predict(X) == alone.predict(X)) > 0.99


def test_a_search_is_that_of_memory(tmp_path):
    X, y = make_ranked(n_rows=900, n_columns=300, density=0.1, seed=5, dtype=np.float32)
    search = CSearchCV(NPSVOR(probability=True), Cs=[0.01, 0.1, 1])
    apart, alone = (fit_shard(search, rows, y, max_rounds=30) for rows in (in_blocks(tmp_path, X, 3), X))
    assert apart.best_C_ == alone.best_C_
    assert abs(apart.best_score_ - alone.best_score_) < 0.05
    np.testing.assert_allclose(apart.predict_proba(X).mean(axis=0), alone.predict_proba(X).mean(axis=0), atol=0.03)


def test_same_bits_every_time(tmp_path):
    X, y = make_ranked(n_rows=200, n_columns=100, seed=4, dtype=np.float32)
    blocks = in_blocks(tmp_path, X, 3)
    first, second = (fit_shard(NPSVOR(random_state=3), blocks, y).coef_ for _ in range(2))
    np.testing.assert_array_equal(first, second)
    assert first.dtype == np.float32


def test_damage_is_noticed(tmp_path):
    X, y = make_ranked(n_rows=80)
    in_blocks(tmp_path, X, 2)
    path = path_of(tmp_path, 1)
    content = bytearray(path.read_bytes())
    content[40] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedError, match="block-00001 is damaged: its checksum"):
        fit_shard(NPSVOR(), Blocks.open(tmp_path), y)
    path.write_bytes(content[:-4])
    with pytest.raises(DamagedError, match="block-00001 is damaged: it has another size"):
        fit_shard(NPSVOR(), Blocks.open(tmp_path), y)


LIMITED = """
import resource, sys
from pathlib import Path
import numpy as np
from rankplane import NPSVOR
from rankplane.distributed import fit_shard
from rankplane.solver.blocks import Blocks

def data():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))

X = np.eye(8, dtype=np.float32)
fit_shard(NPSVOR(), X, np.arange(8) % 4)
blocks, y = Blocks.open(Path(sys.argv[1])), np.load(sys.argv[2])
limit = data() + int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))
found = fit_shard(NPSVOR(C=0.01), blocks, y, holdout=0, max_rounds=2, sweeps=2)
print(found.rounds_[-1].gap)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of data are those of Linux")
def test_blocks_of_ten_times_the_memory(tmp_path):
    """What the process may take beyond what it is without data."""
    limit, n_rows, n_entries = 32 << 20, 1000, 500
    random = np.random.default_rng(0)
    columns = np.sort(random.integers(0, 5000, (n_rows, n_entries)), axis=1).astype(np.int32)
    values = random.standard_normal(columns.size).astype(np.float32)
    X = sp.csr_matrix((values, columns.ravel(), np.arange(n_rows + 1) * n_entries), shape=(n_rows, 5000))
    facts = [write_block(tmp_path, 0, X)]
    n_blocks = 10 * limit // path_of(tmp_path, 0).stat().st_size + 1
    for number in range(1, n_blocks):
        shutil.copy(path_of(tmp_path, 0), path_of(tmp_path, number))
        facts.append(replace(facts[0]))
    Blocks(tmp_path, facts, 5000, X.dtype).save()
    np.save(tmp_path / "y.npy", np.tile(1 + (np.asarray(X.sum(axis=1)).ravel() > 0), n_blocks))
    command = [sys.executable, "-c", LIMITED, str(tmp_path), str(tmp_path / "y.npy"), str(limit)]
    said = subprocess.run(command, capture_output=True, text=True, check=False)
    for number in range(n_blocks):
        path_of(tmp_path, number).unlink()
    assert said.returncode == 0, said.stderr
    assert float(said.stdout) < 1
