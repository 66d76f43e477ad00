"""The load of the benchmarks: bounded, on this machine only, and true to what it finds."""

import importlib.util
import shutil
import sys

import pytest

from benchmarks import common
from benchmarks.serve import load, page, run, servers, soak
from rankplane import datasets, load_model
from server import serving

TEXTS = datasets.load("generated")


@pytest.fixture(autouse=True)
def generated(monkeypatch):
    for module in (run, soak):
        monkeypatch.setattr(module, "data_folder", lambda _: None)


@pytest.mark.parametrize(
    ("address", "connections", "seconds"),
    [
        ("http://example.org/predict", 1, 1),
        ("http://127.0.0.1.example.org/", 1, 1),
        ("http://127.0.0.1:1/", 65, 1),
        ("http://127.0.0.1:1/", 1, 61),
    ],
)
def test_load_is_bounded_and_stays_here(address, connections, seconds):
    with pytest.raises(SystemExit, match="Load is for"):
        load.as_fast_as_possible(address, [{}], connections, seconds)
    with pytest.raises(SystemExit, match="Load is for"):
        load.at_rate(address, {}, connections, seconds, 10)


@pytest.mark.skipif(load.missing() is not None, reason="no wrk or h2load installed")
def test_answers_are_counted_and_failures_too(stars):
    with serving(stars) as server:
        bodies = [{"text": "great"}, {"text": "awful"}]
        address = f"{server.url}predict"
        found = load.as_fast_as_possible(address, bodies, 2, 1)
        assert found["failed"] == 0
        assert 0 < found["p50"] <= found["p95"] <= found["p99"] <= found["longest"]
        assert server.metrics()['rankplane_requests_total{path="/predict",status="200"}'] >= found["requests"] > 0
        assert load.as_fast_as_possible(address, [{"text": 5}], 1, 1)["failed"] > 0
        slow = load.at_rate(address, bodies[0], 2, 1, 40)
        assert 20 <= slow["requests"] <= 60
        assert slow["failed"] == 0


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells about memory in /proc")
def test_a_short_soak(capsys):
    soak.main(["--seconds", "5", "--every", "2", "--clients", "3", "--workers", "1", "--no-save"])
    last = capsys.readouterr().out.splitlines()[-1]
    assert " one" in last
    assert "faults" not in last
    assert "3 replacements" in last


def test_a_soak_finds_what_is_wrong(monkeypatch):
    server = servers.Server("none", 9, 0)
    watch = soak.Soak(server, ["great"], {"aa": [5]})

    class Connection:
        status, version, ranks = 200, "aa", [5]

        def request(self, *_):
            pass

        def getresponse(self):
            return self

        def getheader(self, _):
            return None

        def close(self):
            pass

        def read(self):
            predictions = ", ".join(f'{{"rank": {rank}}}' for rank in self.ranks)
            return f'{{"version": "{self.version}", "predictions": [{predictions}]}}'.encode()

    connection, rng = Connection(), soak.random.Random(0)
    assert watch.exchange(connection, rng, "one") is None
    connection.ranks = [4]
    assert "ranks [4] are not those" in watch.exchange(connection, rng, "one")
    connection.version = "bb"
    assert "version bb is none" in watch.exchange(connection, rng, "one")
    connection.status = 500
    assert "status 500 for 200" in watch.exchange(connection, rng, "one")
    assert soak.grown([5, 10, 10, 10, 30, 30, 30]) == 20
    assert soak.grown([5, 10, 30, 10, 30, 10, 30]) <= 20


def test_the_section_of_the_page(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    assert page.section(tmp_path) == ""
    assert page.held() == []
    times = {"p50": 1.0, "p95": 2.0, "p99": 4.0, "failed": 0, "seconds": 10.0, "processor_us": 150.0}
    about = {"data": "generated", "texts": 100, "workers": 2}
    log = common.Log("serve")
    for server, rate in ((servers.OURS, 6000.0), (servers.THEIRS, 1000.0)):
        for number in range(3):
            setting = {"kind": "throughput", "rows": 1, "connections": 16, "round": number}
            log.write(server=server, requests_per_second=rate + number, **setting, **about, **times)
        setting = {"kind": "half load", "rows": 1, "connections": 64, "round": 0}
        log.write(server=server, requests_per_second=rate / 2, **setting, **about, **times)
    section = page.section(tmp_path)
    assert "6001" in section
    assert section.count(", half load ") == 2
    assert "mixed requests" not in section
    assert [(goal.ratio, goal.verdict) for goal in page.held()] == [
        (pytest.approx(6001 / 1001), "yes (at least 5)"),
        (0.4, "yes (at most 1)"),
    ]
    sent = dict.fromkeys(soak.KINDS, 1200)
    facts = {"seconds": 600, "replacements": 30, "clients": 8, "workers": 2, "faults": 0, "grown_mb": -3.6}
    common.Log("serve").write(server=servers.OURS, kind="soak", requests=sent, memory_mb=[200.0], **facts)
    section = page.section(tmp_path)
    assert "6001" in section
    assert "10 minutes of mixed requests" in section
    assert "every 20\nseconds" in section
    assert "No requests were lost" in section
    assert set(page.SENT) == set(soak.KINDS)


def test_answers_are_compared_before_they_are_timed(stars):
    model = load_model(stars)
    texts = ["great", "awful", "the phone"]

    class Answering:
        name, off = "a server", 0.0

        def ask(self, body):
            shares = model.predict_proba(body["texts"]) + self.off
            ranks = model.predict(body["texts"]).tolist()
            return {"predictions": [{"rank": r, "probabilities": dict(enumerate(p))} for r, p in zip(ranks, shares, strict=True)]}

    server = Answering()
    run.check_answers(server, model, texts)
    server.off = 1e-4
    with pytest.raises(SystemExit, match="a server does not answer as its model does"):
        run.check_answers(server, model, texts)


@pytest.mark.skipif(
    load.missing() is not None or importlib.util.find_spec("fastapi") is None or shutil.which("wrk") is None,
    reason="no wrk, h2load or fastapi installed",
)
def test_both_servers_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    run.main(["--seconds", "1", "--rounds", "1", "--connections", "2", "--rows", "1", "--workers", "1"])
    lines = common.read_lines("serve")
    assert [(line["server"], line["kind"], line["failed"]) for line in lines] == [
        (server, kind, 0) for kind in ("throughput", "half load") for server in (servers.OURS, servers.THEIRS)
    ]
    assert all(line["processor_us"] > 0 for line in lines)
    assert "## Serving" in page.section(tmp_path)
