"""The life of a server: models replaced under load, workers that crash, signals, shared memory, and what an operator says wrong."""

import json
import os
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.pipeline import make_pipeline

from command import COMMAND, complaint
from rankplane import NPSVOR, SVC, TextVectorizer, load_model, save_model
from rankplane.serving import start
from rankplane.serving.models import check_sum
from reviews import REVIEWS, STARS, make_rows
from server import asked, serving, until

needs_proc = pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells about processes in /proc")
TEXTS = [row["review"] for row in make_rows(60, seed=11)]


class Clients:
    """Threads that ask without a pause, each on connections that stay open, and note every answer."""

    def __init__(self, server, n_clients):
        self.server, self.is_over, self.answers, self.failures = server, False, [], []
        self.threads = [threading.Thread(target=self.ask) for _ in range(n_clients)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.is_over = True
        for thread in self.threads:
            thread.join()

    def ask(self):
        connection = self.server.connect()
        number = 0
        while not self.is_over:
            number = (number + 1) % len(TEXTS)
            try:
                status, headers, answer = asked(connection, "POST", "/predict", {"text": TEXTS[number]})
                assert status == 200, answer
            except Exception as error:
                self.failures.append(error)
                connection.close()
                continue
            self.answers.append((number, answer["version"], answer["predictions"][0]["rank"]))
            if headers.get("Connection") == "close":
                connection.close()  # and opened again by the next request
        connection.close()


@needs_proc
def test_a_replaced_file_is_taken_into_use_without_losing_a_request(stars, grades, tmp_path):
    n_workers = 2
    live = tmp_path / "live.rankplane"
    shutil.copy(stars, live)
    versions = {check_sum(path): load_model(path).predict(TEXTS).tolist() for path in map(str, (stars, grades))}
    with serving(live, "--workers", n_workers) as server:
        old = set(server.workers())
        assert len(old) == n_workers
        with Clients(server, 6) as clients:
            for path in (grades, stars):
                shutil.copy(path, tmp_path / "new")
                os.replace(tmp_path / "new", live)
                until(lambda path=path: server.predict(text="great")["version"] == check_sum(str(path)))
            until(lambda: len(server.workers()) == n_workers)
        assert clients.failures == []
        assert {version for _, version, _ in clients.answers} == set(versions)
        assert all(versions[version][number] == rank for number, version, rank in clients.answers)
        assert not old & set(server.workers())
        until(lambda: server.metrics()['rankplane_replacements_total{model="live",used="true"}'] == 2)
        code, output, errors = server.stop()
    assert code == 0
    assert output == "".join(f"Replaced live: version {check_sum(str(path))}\n" for path in (grades, stars))
    assert errors == ""


def test_a_file_that_cannot_be_used_changes_nothing(stars, grades, tmp_path):
    live = tmp_path / "live.rankplane"
    shutil.copy(stars, live)
    with serving(live) as server:
        expected = server.predict(texts=TEXTS)
        live.write_bytes(b"no model")  # in place, which would kill a process that had mapped the file
        metric = 'rankplane_replacements_total{model="live",used="false"}'
        until(lambda: server.metrics()[metric] == 1)
        assert server.predict(texts=TEXTS) == expected
        live.unlink()
        assert server.predict(texts=TEXTS) == expected
        shutil.copy(grades, live)
        until(lambda: server.predict(text="great")["version"] == check_sum(str(grades)))
        _, _, errors = server.stop()
    assert errors == f"rankplane: live is not replaced: {live} is not a model file of rankplane.\n"


def test_what_was_sent_is_answered_before_the_end(stars):
    with serving(stars) as server:
        body = json.dumps({"texts": TEXTS}).encode()
        head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        with socket.create_connection(("127.0.0.1", server.port), timeout=30) as half:
            half.sendall(head.encode() + body[:10])
            assert server.ask("GET", "/ready")[0] == 200
            server.process.send_signal(signal.SIGTERM)
            until(lambda: asked_to_connect(server) is False)
            half.sendall(body[10:])
            answer = b""
            while chunk := half.recv(65536):
                answer += chunk
        assert answer.startswith(b"HTTP/1.1 200 OK")
        assert b"connection: close" in answer
        code, _, errors = server.stop()
    assert (code, errors) == (0, "")


def asked_to_connect(server):
    try:
        socket.create_connection(("127.0.0.1", server.port), timeout=5).close()
    except OSError:
        return False
    return True


@needs_proc
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_signals_end_it_and_all_workers(number, stars):
    with serving(stars, "--workers", "3", preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler)) as server:
        workers = server.workers()
        assert len(workers) == 3
        code, output, errors = server.stop(number)
    assert (code, output, errors) == (0, "", "")
    assert not any(os.path.exists(f"/proc/{pid}") for pid in workers)


@needs_proc
def test_workers_that_end_are_replaced_and_none_outlives_the_server(stars):
    with serving(stars, "--workers", "2") as server:
        first, second = server.workers()
        os.kill(first, signal.SIGKILL)
        until(lambda: len(server.workers()) == 2 and first not in server.workers())
        until(lambda: server.metrics()["rankplane_workers_lost_total"] == 1)
        assert [server.predict(text=text)["model"] for text in TEXTS] == ["stars"] * len(TEXTS)
        workers = server.workers()
        assert second in workers
        server.process.kill()
        until(lambda: not any(is_alive(pid) for pid in workers))


def is_alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@needs_proc
def test_workers_share_the_memory_of_the_models(tmp_path):
    """Each worker adds a small part of the size of the model: what it needs to run, which it would with a tiny model too."""
    n_columns = 500_000
    rng = np.random.default_rng(0)
    X = sp.csr_matrix((np.ones(500), rng.integers(0, n_columns, 500), np.arange(501)), shape=(500, n_columns))
    model = make_pipeline(NPSVOR(probability=True)).fit(X, np.arange(500) % 5 + 1)
    metadata = {"inputs": {"target": "stars", "n_columns": n_columns}}
    own = {}
    for name, path in {"large": tmp_path / "large.rankplane", "small": tmp_path / "small.rankplane"}.items():
        if name == "small":
            model = make_pipeline(NPSVOR(probability=True)).fit(X[:, :10], np.arange(500) % 5 + 1)
            metadata = {"inputs": {"target": "stars", "n_columns": 10}}
        save_model(model, path, metadata=metadata)
        with serving(path, "--workers", "2") as server:
            for _ in range(20):
                server.predict(row={"3": 1, "7": 2})
            own[name] = max(map(private_bytes, server.workers()))
    n_bytes = os.path.getsize(tmp_path / "large.rankplane")
    assert n_bytes > 15e6
    assert own["large"] - own["small"] < n_bytes / 5


def private_bytes(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        return sum(1024 * int(line.split()[1]) for line in file if line.startswith("Private_"))


def test_more_connections_than_there_can_be_are_refused(stars):
    with serving(stars, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (110, 110))) as server:
        connections = [socket.create_connection(("127.0.0.1", server.port), timeout=30) for _ in range(11)]
        head, _, body = connections[-1].recv(65536).partition(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.1 503 ")
        assert json.loads(body) == {"error": "The server has more connections than it can: try again later."}
        for connection in connections:
            connection.close()
        until(lambda: server.ask("GET", "/health")[0] == 200)


def test_a_token(stars, tmp_path):
    token = "correct-horse-battery"
    (tmp_path / "token").write_text(f"{token}\n")
    environment = {**os.environ, "RANKPLANE_TOKEN": token}
    for options, more in (([], {"env": environment}), (["--token-file", tmp_path / "token"], {})):
        with serving(stars, *options, **more) as server:
            sentence = "A valid token is needed, in the header Authorization: Bearer TOKEN."
            for headers in ({}, {"Authorization": token}, {"Authorization": f"Bearer {token}x"}, {"Authorization": "Bearer"}):
                assert server.refusal(401, {"text": "great"}, headers) == sentence
            right = {"Authorization": f"bearer {token}"}
            assert server.ask("POST", "/predict", {"text": "great"}, right)[0] == 200
            for path, status in {"/models": 401, "/metrics": 401, "/health": 200, "/ready": 200, "/": 200, "/docs": 200}.items():
                assert server.ask("GET", path)[0] == status
                assert server.ask("GET", path, headers=right)[0] == 200
            assert server.ask("GET", "/models")[1]["WWW-Authenticate"] == "Bearer"


def test_pages_of_other_sites_need_leave(stars):
    headers = {"Origin": "https://shop.example", "Access-Control-Request-Method": "POST"}
    with serving(stars) as server:
        assert "Access-Control-Allow-Origin" not in server.ask("GET", "/models", headers=headers)[1]
        assert server.ask("OPTIONS", "/predict", headers=headers)[0] == 405
    with serving(stars, "--allow-origin", "https://shop.example") as server:
        asking = {**headers, "Access-Control-Request-Headers": "content-type"}
        status, found, _ = server.ask("OPTIONS", "/predict", headers=asking)
        assert (status, found["Access-Control-Allow-Origin"]) == (200, "https://shop.example")
        other = {"Origin": "https://other.example"}
        assert "Access-Control-Allow-Origin" not in server.ask("GET", "/models", headers=other)[1]


@pytest.mark.parametrize("log", ["requests", "texts"])
def test_texts_are_logged_only_if_asked(log, stars):
    with serving(stars, "--log", log) as server:
        assert server.predict(text="a great secret", explain=True)
        server.refusal(400, {"text": 5})
        code, output, errors = server.stop()
    assert (code, errors) == (0, "")
    lines = [json.loads(line) for line in output.splitlines()]
    assert [(line["path"], line["status"]) for line in lines] == [("/predict", 200), ("/predict", 400)]
    assert ("a great secret" in output) == (log == "texts")
    assert (lines[0]["model"], lines[0]["rows"], lines[0]["method"]) == ("stars", 1, "POST")
    if log == "texts":
        assert lines[0]["asked"]["text"] == "a great secret"
        assert lines[0]["ranks"][0] in (1, 2, 3, 4, 5)


def test_whoever_listens_to_all_addresses_is_warned(stars):
    command = [*COMMAND, "serve", str(stars), "--port", "0", "--host", "0.0.0.0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline().startswith("Serving stars on http://0.0.0.0:")
        process.terminate()
        _, errors = process.communicate(timeout=60)
    assert errors.startswith("rankplane: warning: whoever can reach 0.0.0.0 can use this server: ")
    assert errors.count("\n") == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--port", "70000"], "--port must be a port from 0 to 65535; 0 takes a free one. Got 70000."),
        (["--workers", "0"], "--workers must be a number of processes from 1 to 256. Got 0."),
        (["--max-body", "0"], "--max-body must be a number of megabytes from 0.001 to 1000. Got 0."),
        (["--max-rows", "0"], "--max-rows must be a number from 1 to 1,000,000. Got 0."),
        (["--timeout", "nan"], "--timeout must be a number of seconds from 0.1 to 3600. Got nan."),
        (["--log", "all"], "--log must be one of nothing, requests, texts. Got all."),
        (["--allow-origin", "example.org"], "--allow-origin must be an origin such as https://example.org, or *. Got example.org."),
        (["--token-file", "nowhere"], "nowhere: No such file or directory"),
    ],
)
def test_options_that_cannot_be_used(options, sentence, stars, capsys):
    assert complaint(capsys, ["serve", stars, *options]) == sentence


def failure(*arguments, **options):
    """The one line that a server says that cannot start."""
    done = subprocess.run([*COMMAND, "serve", *map(str, arguments)], capture_output=True, text=True, timeout=60, **options)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.count("\n") == 1
    return done.stderr.removeprefix("rankplane: ").rstrip("\n")


def test_servers_that_cannot_start(stars, tmp_path):
    shutil.copy(stars, tmp_path / "stars.rankplane")
    same = f"{stars} and {tmp_path}/stars.rankplane would both be called stars: give one of the files another name."
    assert failure(stars, tmp_path / "stars.rankplane", "--port", "0") == same
    assert failure(tmp_path / "none", "--port", "0") == f"{tmp_path}/none: No such file or directory"
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for workers in ("1", "2"):
            sentence = f"127.0.0.1 port {port} cannot be used: address already in use."
            assert failure(stars, "--port", port, "--workers", workers) == sentence
    assert failure(stars, "--host", "no.such.host.invalid").startswith(
        "--host must be a name or an address of this machine. Got no."
    )
    for name, model in {"bare": NPSVOR(), "sure": SVC(probability=True)}.items():
        save_model(make_pipeline(TextVectorizer(), model).fit(REVIEWS, STARS), tmp_path / name)
    assert re.search("bare was not written by rankplane train", failure(tmp_path / "bare", "--port", "0"))
    pipeline = make_pipeline(TextVectorizer(), NPSVOR()).fit(REVIEWS, STARS)
    save_model(pipeline, tmp_path / "bare", metadata={"inputs": {"target": "stars", "text": ["review"]}})
    assert failure(tmp_path / "bare", "--port", "0") == (
        f"{tmp_path}/bare has no probabilities: its model must be one of rankplane, fitted with probability=True."
    )
    environment = {**os.environ, "RANKPLANE_TOKEN": "short"}
    assert failure(stars, env=environment) == (
        "The environment variable RANKPLANE_TOKEN must hold a token of at least 16 letters, digits or signs, without spaces."
    )


def test_a_pipeline_of_ones_own_can_be_served(tmp_path):
    pipeline = make_pipeline(TextVectorizer(), SVC(probability=True)).fit(REVIEWS, STARS)
    save_model(pipeline, tmp_path / "own", metadata={"inputs": {"target": "stars", "text": ["review"]}})
    with serving(tmp_path / "own") as server:
        found = server.predict(texts=REVIEWS[:6])["predictions"]
    assert [prediction["rank"] for prediction in found] == pipeline.predict(REVIEWS[:6]).tolist()


def test_what_is_not_installed_is_named(stars, monkeypatch, capsys):
    monkeypatch.setattr(start, "find_spec", lambda name: None if name == "uvicorn" else name)
    assert complaint(capsys, ["serve", stars]) == "rankplane serve needs uvicorn: pip install 'rankplane[serve]'."


@needs_proc
def test_metrics_add_up_over_workers(stars):
    from prometheus_client.parser import text_string_to_metric_families

    with serving(stars, "--workers", "2") as server:
        asked_of = set()
        for number, text in enumerate(TEXTS):
            server.predict(text=text) if number % 2 else server.predict(texts=[text, text])
        server.refusal(400, {"text": 5})
        server.ask("GET", '/no"where\n'.replace("\n", "%0A"))
        _, headers, text = server.ask("GET", "/metrics")
        asked_of = {name: value for name, value in server.metrics().items() if name.startswith("rankplane_request_seconds_count")}
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    families = {family.name: family for family in text_string_to_metric_families(text)}
    assert all(family.documentation and family.type in ("counter", "gauge", "histogram") for family in families.values())

    def value(name, **labels):
        (found,) = [s.value for family in families.values() for s in family.samples if s.name == name and s.labels == labels]
        return found

    assert value("rankplane_requests_total", path="/predict", status="200") == len(TEXTS)
    assert value("rankplane_requests_total", path="/predict", status="400") == 1
    assert value("rankplane_requests_total", path="other", status="404") == 1
    assert value("rankplane_rows_total", model="stars") == len(TEXTS) * 3 // 2
    assert sum(value("rankplane_predictions_total", model="stars", rank=str(rank)) for rank in range(1, 6)) == len(TEXTS) * 3 // 2
    assert value("rankplane_request_seconds_count") == value("rankplane_request_seconds_bucket", le="+Inf") == len(TEXTS)
    assert value("rankplane_workers") == 2
    assert asked_of == {"rankplane_request_seconds_count": len(TEXTS)}
    buckets = [s for s in families["rankplane_request_seconds"].samples if s.name.endswith("_bucket")]
    assert [s.value for s in buckets] == sorted(s.value for s in buckets)
