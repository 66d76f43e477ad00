"""The load of the benchmarks: bounded, on this machine only, and true to what it finds."""

import importlib.util
import shutil
import sys

import pytest

from benchmarks import common
from benchmarks.serve import load, page, run, servers, soak
from rankplane import datasets
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
    soak.main(["--seconds", "5", "--every", "2", "--clients", "3", "--workers", "1"])
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
    assert page.section(tmp_path) == ""
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    times = {"p50": 1.0, "p95": 2.0, "p99": 4.0, "failed": 0, "seconds": 10.0}
    log = common.Log("serve")
    for server, rate in ((page.OURS, 6000.0), (page.THEIRS, 1000.0)):
        for number in range(3):
            setting = {"kind": "throughput", "rows": 1, "connections": 16, "round": number, "texts": 100, "workers": 2}
            log.write(server=server, requests_per_second=rate + number, **setting, **times)
    log.write(
        server=page.OURS, kind="half load", rows=1, connections=16, round=0, texts=100, workers=2, requests_per_second=3e3, **times
    )
    section = page.section(tmp_path)
    assert "| rankplane serve" in section
    assert "6001" in section
    assert [(goal.ratio > 5.9, goal.verdict) for goal in page.held()] == [(True, "yes (at least 5)"), (False, "yes (at most 1)")]


@pytest.mark.skipif(
    load.missing() is not None or importlib.util.find_spec("fastapi") is None or shutil.which("wrk") is None,
    reason="no wrk, h2load or fastapi installed",
)
def test_both_servers_are_measured(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    run.main(["--seconds", "1", "--rounds", "1", "--connections", "2", "--rows", "1", "--workers", "1"])
    lines = common.read_lines("serve")
    assert [(line["server"], line["kind"], line["failed"]) for line in lines] == [
        (page.OURS, "throughput", 0),
        (page.THEIRS, "throughput", 0),
        (page.OURS, "half load", 0),
    ]
    assert "## Serving" in page.section(tmp_path)
