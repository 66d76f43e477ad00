"""Fits on real clusters of processes, with what can happen to them. `tests/distributed` has the mathematics."""

import logging
import os
import signal
import time

import dask
import numpy as np
import pandas
import pytest
import scipy.sparse as sp
from dask import array, bag, dataframe, delayed
from distributed import Client, LocalCluster
from sklearn.pipeline import make_pipeline

from conftest import make_ranked
from rankplane import NPSVOR, CSearchCV, TextVectorizer, load_model
from rankplane.dask import SchedulerLostError, fit, launch, train
from rankplane.distributed import PeerLostError, Threads, fit_shard
from reviews import make_rows, write_csv


@pytest.fixture(scope="module")
def client():
    # The working directory may be that of a test that has ended.
    cluster = LocalCluster(n_workers=3, threads_per_worker=1, dashboard_address=":0", silence_logs=logging.ERROR)
    with cluster, Client(cluster) as client:
        yield client


def deal(X, y, *ends):
    return [(X[a:b], y[a:b]) for a, b in zip([0, *ends], [*ends, len(y)], strict=True)]


def in_threads(model, parts, **options):
    return Threads(len(parts)).run(lambda comm: fit_shard(model, *parts[comm.rank], comm, **options))[0]


@pytest.fixture(scope="module")
def rows():
    return make_ranked(n_rows=600, n_columns=100, seed=1)


def test_a_fit_is_that_of_the_same_shards_anywhere(client, rows):
    """Unequal shards, one of them without rows; rounds are reported as they are made."""
    parts = deal(*rows, 100, 100)
    model = CSearchCV(NPSVOR(probability=True), Cs=[0.1, 1, 10])
    heard = []
    found = fit(client, model, parts, sweeps=5, on_round=heard.append)
    expected = in_threads(model, parts, sweeps=5)
    np.testing.assert_array_equal(found.best_estimator_.coef_, expected.best_estimator_.coef_)
    np.testing.assert_array_equal(found.predict_proba(rows[0]), expected.predict_proba(rows[0]))
    until = time.monotonic() + 10
    while len(heard) < len(found.rounds_) and time.monotonic() < until:
        time.sleep(0.05)
    assert [one.objective for one in heard] == [one.objective for one in found.rounds_]
    logs = [line for lines in client.get_worker_logs().values() for _, line in lines]
    for rank in range(3):
        assert any(f"worker {rank} of 3: round 1  C=0.1  objective" in line for line in logs)


def test_parts_of_all_kinds(client, rows):
    X, y = rows
    parts = deal(X, y, 200, 400)
    model = NPSVOR()
    expected = in_threads(model, parts, sweeps=5)

    def same(given, expected=expected):
        np.testing.assert_allclose(fit(client, model, given, sweeps=5).coef_, expected.coef_, atol=1e-9)

    same([tuple(client.scatter(list(part))) for part in parts])
    same([delayed(part) for part in parts])
    same([(delayed(rows), delayed(labels)) for rows, labels in parts])
    same(client.scatter(parts))
    dense = [(rows.toarray(), labels) for rows, labels in parts]
    of_dense = in_threads(model, dense, sweeps=5)
    same((array.from_array(X.toarray(), chunks=(200, 100)), array.from_array(y, chunks=200)), of_dense)
    frame = dataframe.from_pandas(pandas.DataFrame(X.toarray()).add_prefix("x").assign(y=y), npartitions=3)
    of_frame = fit(client, model, (frame.drop(columns="y"), frame["y"]), sweeps=5)
    assert of_frame.feature_names_in_[0] == "x0"
    assert np.mean(of_frame.predict(pandas.DataFrame(X.toarray()).add_prefix("x")) == expected.predict(X)) > 0.9


def test_bags_of_texts(client):
    rows = make_rows(240)
    texts, stars = [row["review"] for row in rows], [row["stars"] for row in rows]
    pairs = bag.from_sequence(list(zip(texts, stars, strict=True)), npartitions=4)
    model = make_pipeline(TextVectorizer(), NPSVOR())
    found = fit(client, model, pairs, sweeps=5)
    expected = TextVectorizer().fit(texts)
    assert found[0].get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    assert np.abs(found.predict(texts) - stars).mean() < 1
    columns = bag.from_sequence(texts, npartitions=4), bag.from_sequence(stars, npartitions=4)
    np.testing.assert_array_equal(fit(client, model, columns, sweeps=5).predict(texts), found.predict(texts))


def test_from_files_to_a_model_file(client, tmp_path, capsys, monkeypatch):
    for name, value in {"TTY_COMPATIBLE": "1", "TERM": "xterm", "COLUMNS": "100"}.items():
        monkeypatch.setenv(name, value)
    rows = make_rows(900)
    for number in range(5):
        write_csv(tmp_path / f"reviews-{number}.csv", rows[number::5])
    output = str(tmp_path / "m.rankplane")
    found = train(
        client, str(tmp_path / "reviews-*.csv"), text=["title", "review"], target="stars", output=output, sweeps=5, verbose=1
    )
    texts = [f"{row['title']}\n{row['review']}" for row in rows]
    assert np.abs(found.predict(texts) - [row["stars"] for row in rows]).mean() < 0.9
    assert found[-1].probability
    loaded = load_model(output)
    np.testing.assert_array_equal(loaded.predict(texts), found.predict(texts))
    from rankplane.training.model import TrainedModel

    assert TrainedModel.open(output).inputs.text == ["title", "review"]
    assert "Fitting on 3 workers" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "parts must hold at least one part. Got none"),
        ({"X": 1}, "parts must be a list, a tuple of Dask collections, or a bag. Got dict"),
        ((np.ones(3), np.ones(3)), "parts must be a list of parts, or a tuple of Dask arrays"),
        ([3.5], "parts must be .X, y., .X, y, sample_weight. or lists of pairs. Got float"),
        ((array.ones((4, 4), chunks=2), array.ones(4, chunks=2)), "parts must hold whole rows"),
        ((array.ones((4, 4), chunks=4), array.ones(4, chunks=2)), "the same number of partitions. Got 1, 2"),
        ([(np.ones((4, 2)), np.ones(4))], "at least two different ranks"),
    ],
)
def test_parts_that_make_no_sense_are_refused(client, parts, message):
    with pytest.raises(ValueError, match=message):
        fit(client, NPSVOR(), parts)


def test_files_that_make_no_sense_are_refused(client, tmp_path):
    path = write_csv(tmp_path / "a.csv", make_rows(20))
    with pytest.raises(ValueError, match='has no column "words"'):
        train(client, path, text="words", target="stars")
    with pytest.raises(FileNotFoundError):
        train(client, str(tmp_path / "b-*.csv"), text="review", target="stars")
    with pytest.raises(ValueError, match="workers must name workers of the cluster"):
        train(client, path, text="review", target="stars", workers=["nobody"])


# --- failures ------------------------------------------------------------------------------------------------------------------


def once(path):
    """Whether nobody has been here before."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def killer(client, path, number):
    """Kills a worker's process in some round, once."""
    pids = sorted(client.run(os.getpid).values())
    heard = []

    def kill_once(report):
        heard.append(report)
        if report.number >= number and once(path):
            os.kill(pids[1], signal.SIGKILL)

    return kill_once


def test_a_fit_goes_on_after_the_death_of_a_worker(client, rows, tmp_path):
    X, y = sp.vstack([rows[0]] * 3).tocsr(), np.tile(rows[1], 3)
    parts = [delayed(part) for part in deal(X, y, 500, 600, 1200)]
    model = CSearchCV(NPSVOR(probability=True), Cs=[0.03, 0.1, 0.3, 1, 3, 10])
    kill = killer(client, tmp_path / "killed", 5)
    found = fit(client, model, parts, sweeps=5, on_round=kill)
    assert (tmp_path / "killed").exists()
    assert any("interrupted: Worker" in line for lines in client.get_worker_logs().values() for _, line in lines)
    numbers = [one.number for one in found.rounds_]
    assert numbers == list(range(1, len(numbers) + 1))
    whole = fit(client, model, parts, sweeps=5)
    assert [one.objective for one in found.rounds_[:5]] == [one.objective for one in whole.rounds_[:5]]
    assert abs(found.best_score_ - whole.best_score_) < 0.05
    assert np.abs(found.predict(X) - y).mean() < np.abs(whole.predict(X) - y).mean() + 0.05


def test_what_cannot_be_made_again_is_said(client, rows, tmp_path):
    """Data that only the dead worker had."""
    client.wait_for_workers(3)
    dealt = zip(deal(*rows, 200, 400), launch.alive(client), strict=True)
    parts = [client.scatter(part, workers=[worker]) for part, worker in dealt]
    kill = killer(client, tmp_path / "killed", 2)
    with pytest.raises(PeerLostError, match="parts must be such that Dask can make them again"):
        fit(client, NPSVOR(tol=1e-4), parts, sweeps=1, max_rounds=100_000, on_round=kill)


@pytest.mark.parametrize(("last", "is_gone"), [("finished", False), ("cancelled", True)])
def test_lost_parts_are_given_time(monkeypatch, last, is_gone):
    """The scheduler says of all parts of a dead worker that they are lost, and only then makes them again, or cannot."""

    class Part:
        n_looks = 0

        @property
        def status(self):
            self.n_looks += 1
            return "lost" if self.n_looks < 5 else last

    monkeypatch.setattr(launch, "Future", Part)
    shards = [launch.Shard("tcp://127.0.0.1:1", [(Part(), [1, 2])])]
    if is_gone:
        with pytest.raises(PeerLostError, match=r"Got some that only tcp://.* had"):
            launch.check_parts(shards)
    else:
        launch.check_parts(shards)


def test_a_lost_scheduler_is_said(rows, monkeypatch):
    monkeypatch.setattr(launch, "SECONDS_TO_RECONNECT", 1.0)
    cluster = LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0", silence_logs=logging.CRITICAL
    )
    with dask.config.set({"distributed.comm.timeouts.connect": "1s"}), cluster, Client(cluster, timeout=1) as client:
        is_closed = []

        def close(report):
            if report.number == 2:
                is_closed.append(True)
                cluster.loop.add_callback(cluster.scheduler.close)

        model = NPSVOR(tol=1e-6)
        with pytest.raises(SchedulerLostError, match="The scheduler is gone"):
            fit(client, model, deal(*rows), sweeps=1, max_rounds=2000, holdout=0, on_round=close)
        assert is_closed
