"""Every bad request gets one sentence of JSON, whatever comes over the wire, and the server goes on."""

import asyncio
import json
import re
import socket
import struct
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rankplane.serving import app as serving_app
from rankplane.serving.app import Service
from rankplane.serving.counts import Counts
from rankplane.serving.errors import RequestError
from rankplane.serving.models import ServedModel
from rankplane.serving.options import ServerOptions
from rankplane.serving.questions import question_of
from server import asked, serving

FIELDS = "model, text, texts, row, rows, set, explain"
BAD = [
    (b"{", 400, "The body cannot be read: not JSON: Expecting property name enclosed in double quotes at character 2."),
    (b"", 400, "The body cannot be read: not JSON: Expecting value at character 1."),
    (b"\xff", 400, "The body must be UTF-8 text: byte 1 is none."),
    (b"[1]", 400, "The body must be a JSON object. Got [1]."),
    (b'{"text": NaN}', 400, "The body cannot be read: not JSON: NaN."),
    (b'{"text": "a", "text": "b"}', 400, 'The body cannot be read: key "text" occurs twice.'),
    (b'{"text": "\\ud800"}', 400, r"The body cannot be read: \ud800 is half of a pair of surrogates, which is no character."),
    (b'{"text": ' + b"[" * 5000, 400, "The body cannot be read: lists and objects are nested deeper than 100 levels."),
    (b'{"set": ' + b"9" * 5000 + b"}", 400, "The body cannot be read: a whole number has too many digits."),
    ({"txt": "a"}, 400, '"txt" is not a field of the request: did you mean text?'),
    ({"quantile": 1}, 400, f'"quantile" is not a field of the request: it has {FIELDS}.'),
    ({}, 400, "The request must have one of the fields text, texts, row and rows. Got none."),
    ({"text": "a", "row": {}}, 400, "The request must have one of the fields text, texts, row and rows. Got text and row."),
    ({"text": "a"}, 400, "model must be one of stars, grades, risk, numbers, bent. Got null."),
    ({"text": "a", "model": "star"}, 400, 'model must be one of stars, grades, risk, numbers, bent. Got "star".'),
    ({"text": 5, "model": "stars"}, 400, "text must be a string. Got 5."),
    ({"texts": "a", "model": "stars"}, 400, 'texts must be a list. Got "a".'),
    ({"texts": ["a", None], "model": "stars"}, 400, "texts[1] must be a string. Got null."),
    ({"texts": ["a"] * 51, "model": "stars"}, 413, "texts must have at most 50 items. Got 51."),
    ({"texts": ["a", "b" * 5001], "model": "stars"}, 413, "texts[1] must have at most 5,000 characters. Got 5,001."),
    ({"row": {"review": "b" * 5001}, "model": "stars"}, 413, "row.review must have at most 5,000 characters. Got 5,001."),
    ({"text": "a", "model": "risk"}, 400, "risk takes rows of columns (age, smoker), not texts: use the field row or rows."),
    ({"text": "a", "model": "numbers"}, 400, "numbers takes rows of numbered columns, not texts: use the field row or rows."),
    ({"rows": [{}, 5], "model": "risk"}, 400, "rows[1] must be an object with a value for each column. Got 5."),
    ({"row": {"Age": 5, "smoker": ""}, "model": "risk"}, 400, 'row has no column "age": did you mean "Age"?'),
    (
        {"rows": [{"age": 5, "smoker": ["yes"]}], "model": "risk"},
        400,
        "rows[0]: Column 'smoker' must hold numbers or words, not lists. ",
    ),
    ({"row": {"one": 5}, "model": "numbers"}, 400, "row must have column numbers as keys, from 1. Got 'one'."),
    ({"text": "a", "model": "stars", "set": 1}, 400, "set must be a probability between 0 and 1, such as 0.9. Got 1."),
    ({"text": "a", "model": "stars", "set": True}, 400, "set must be a probability between 0 and 1, such as 0.9. Got true."),
    ({"text": "a", "model": "stars", "set": 1.5}, 400, "set must be a probability between 0 and 1, such as 0.9. Got 1.5."),
    ({"text": "a", "model": "stars", "explain": 1}, 400, "explain must be true or false. Got 1."),
    (
        {"row": {}, "model": "numbers", "explain": True},
        400,
        "numbers cannot be explained: that needs the weights of a linear model",
    ),
    ({"texts": ["a"] * 21, "model": "stars", "explain": True}, 413, "explain is for at most 20 rows at once. Got 21."),
    (
        {"texts": ["b" * 5000] * 5, "model": "stars", "explain": True},
        413,
        "explain is for at most 20,000 characters at once. Got 25,000.",
    ),
    (b" " * 200_001, 413, "The body must have at most 200,000 bytes."),
]


@pytest.mark.parametrize(("body", "status", "sentence"), BAD, ids=[sentence[:40] for _, _, sentence in BAD])
def test_the_sentence(server, body, status, sentence):
    found = server.refusal(status, body)
    assert found.startswith(sentence)
    assert found.endswith((".", "?"))


def test_paths_methods_and_types(server):
    assert server.ask("GET", "/nowhere")[::2] == (404, {"error": "There is nothing at /nowhere: /docs says what there is."})
    assert server.ask("GET", "/models/")[0] == 404
    status, headers, answer = server.ask("GET", "/predict")
    assert (status, headers["Allow"]) == (405, "POST")
    assert answer == {"error": "/predict takes POST. Got GET."}
    assert server.ask("DELETE", "/models")[::2] == (405, {"error": "/models takes GET. Got DELETE."})
    sentence = "Content-Type must be application/json. Got text/plain."
    assert server.refusal(415, b'{"text": "a"}', {"Content-Type": "text/plain"}) == sentence
    body = {"model": "stars", "text": "a"}
    assert server.ask("POST", "/predict", body, {"Content-Type": "Application/JSON; charset=utf-8"})[0] == 200


def test_a_large_body_is_read_to_be_refused(server):
    """A client that sends all before it reads must not find the connection broken."""
    connection = server.connect()
    assert asked(connection, "POST", "/predict", b"x" * 1_000_000)[0] == 413
    connection.close()
    status, _, _ = server.ask("POST", "/predict", b"x" * 200_001, {"Expect": "100-continue"})
    assert status == 413


@pytest.mark.parametrize(
    ("data", "status", "sentence"),
    [
        (b"hello\r\n\r\n", 400, "The request is not valid HTTP."),
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000, 431, "The head of a request must have at most 65,536 bytes."),
        # Also if all of it, or its end, is there at once.
        (b"GET / HTTP/1.1\r\nX: " + b"x" * 100_000 + b"\r\n\r\n", 431, "The head of a request must have at most 65,536 bytes."),
        (b"GET /" + b"x" * 66_000 + b" HTTP/1.1\r\n\r\n", 431, "The head of a request must have at most 65,536 bytes."),
        (b"POST /predict HTTP/1.1\r\nContent-Length: nine\r\n\r\n", 400, "The request is not valid HTTP."),
    ],
)
def test_what_is_no_request(server, data, status, sentence):
    head, _, body = server.send(data).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert json.loads(body) == {"error": sentence}


def test_offers_of_other_protocols_are_ignored(server):
    """As Java's client makes one with each request."""
    offers = "Connection: Upgrade, HTTP2-Settings{}\r\nUpgrade: h2c\r\nHTTP2-Settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\n"
    body = '{"model": "stars", "text": "a, Connection: Upgrade"}'
    head = f"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    two = f"{head}{offers.format('')}\r\n{body}{head}{offers.format(', close')}\r\n{body}".encode()
    expected = server.predict(model="stars", text="a, Connection: Upgrade")
    for sent in (two, two.replace(b"h2c", b"websocket")):
        answers = server.send(sent).split(b"HTTP/1.1 200 OK")[1:]
        assert [json.loads(answer.partition(b"\r\n\r\n")[2]) for answer in answers] == [expected, expected]
    many = b"GET /health HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n" * 2000
    last = b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n"
    assert server.send(many + last).count(b"HTTP/1.1 200 OK") == 2001
    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for byte in two[: len(two) // 2]:
            connection.sendall(bytes([byte]))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200 OK")
    assert server.send(b"CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 400 ")


def test_clients_that_stop_sending(stars):
    late = {"error": "The request did not arrive within 0.3 seconds."}
    with serving(stars, "--timeout", "0.3") as server:
        head, _, body = server.send(b"POST /predict HTTP/1.1\r\nHost: x\r\n").partition(b"\r\n\r\n")
        assert (head[:12], json.loads(body)) == (b"HTTP/1.1 408", late)
        fields = b"Content-Type: application/json\r\nContent-Length: 20"
        head, _, body = server.send(b"POST /predict HTTP/1.1\r\nHost: x\r\n" + fields + b'\r\n\r\n{"text').partition(b"\r\n\r\n")
        assert (head[:12], json.loads(body)) == (b"HTTP/1.1 408", late)
        assert server.send(b"") == b""  # nothing is said to a client that says nothing
        with socket.create_connection(("127.0.0.1", server.port)) as connection:
            connection.sendall(b"POST /predict HTTP/1.1\r\nHost: x\r\n" + fields + b"\r\n\r\n{")
        assert server.predict(text="great")["predictions"]


def test_a_client_that_has_gone_is_no_bug(stars):
    with serving(stars) as server:
        body = b'{"text": "great"}'
        head = b"POST /predict HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        for _ in range(20):
            connection = socket.create_connection(("127.0.0.1", server.port), timeout=30)
            # Closed with an answer unread, the connection is reset while others are still being written.
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            connection.sendall((head + body) * 100)
            connection.recv(1)
            connection.close()
        assert server.predict(text="great")["predictions"]
        assert server.stop()[2] == ""


def test_a_large_body_is_read_beside_others(models, monkeypatch):
    """Not by the thread that answers all others."""
    readers = []

    def noted(*arguments):
        readers.append(threading.current_thread() is threading.main_thread())
        return question_of(*arguments)

    monkeypatch.setattr(serving_app, "question_of", noted)
    monkeypatch.setattr(serving_app, "LARGE", 100)
    for size in (1, 1000):
        status, answer = answered(models, json.dumps({"model": "stars", "text": "a" * size}).encode(), ServerOptions())
        assert (status, len(answer["predictions"])) == (200, 1)
    assert readers == [True, False]
    assert answered(models, b"[" * 1000) == (
        400,
        {"error": "The body cannot be read: lists and objects are nested deeper than 100 levels."},
    )


PLAIN = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
VALUES = PLAIN | st.lists(PLAIN, max_size=3) | st.dictionaries(st.sampled_from(["title", "review", "age", "smoker", "1"]), PLAIN)
BODIES = st.dictionaries(st.sampled_from([*FIELDS.split(", "), "x"]), VALUES | st.lists(VALUES, max_size=3)) | VALUES


@pytest.fixture(scope="module")
def models(stars, grades, risk, numbers, bent):
    paths = {"stars": stars, "grades": grades, "risk": risk, "numbers": numbers, "bent": bent}
    return {name: ServedModel.read(name, str(path)) for name, path in paths.items()}


def answered(models, body, options=None, content_type=b"application/json"):
    """Status and body of the answer of a service in this process."""
    options = options or ServerOptions(max_rows=3, max_characters=4)
    counts = Counts(1)
    for served in models.values():
        counts.declare(served)
    service = Service(models, options, counts)
    sent = []

    async def receive():
        return {"type": "http.request", "body": body, "more_body": False}

    async def send(message):
        sent.append(message)

    headers = [(b"content-type", content_type)]
    scope = {"type": "http", "method": "POST", "path": "/predict", "headers": headers, "query_string": b"", "scheme": "http"}
    asyncio.run(service.app()(scope, receive, send))
    service.executor.shutdown()
    return sent[0]["status"], json.loads(sent[1]["body"])


@given(st.sampled_from(["stars", "grades", "risk", "numbers", "bent"]), BODIES)
@settings(max_examples=300, deadline=None)
def test_any_json_is_answered_or_refused(models, name, body):
    if isinstance(body, dict):
        body = {"model": name} | body
    status, answer = answered(models, json.dumps(body).encode())
    assert status in (200, 400, 413), answer
    if status != 200:
        assert list(answer) == ["error"]
        assert "\n" not in answer["error"]


@given(st.binary(max_size=40))
@settings(max_examples=200, deadline=None)
def test_any_bytes_are_refused(models, body):
    with pytest.raises(RequestError):
        question_of(body + b"]", models, ServerOptions())


def test_a_bug_is_reported_without_what_it_was_about(models, monkeypatch, capsys):
    def fail(*_):
        raise RuntimeError("secret text in /home/me")

    monkeypatch.setattr(serving_app, "answer_to", fail)
    body = json.dumps({"model": "stars", "text": "abc"}).encode()
    assert answered(models, body) == (500, {"error": "Something failed on the server."})
    said = capsys.readouterr().err
    assert re.fullmatch(r"rankplane: a request failed by RuntimeError, in .*app\.py:\d+ predict > .*fail\n", said)
    assert "secret" not in said
    assert answered(models, body, ServerOptions(log="texts"))[0] == 500
    assert "secret text" in capsys.readouterr().err


def test_there_is_an_end_to_waiting(models, monkeypatch):
    def slow(*_):
        time.sleep(0.5)

    monkeypatch.setattr("rankplane.serving.batching.judge", slow)
    body = json.dumps({"model": "stars", "text": "abc"}).encode()
    sentence = "The prediction took longer than 0.1 seconds."
    assert answered(models, body, ServerOptions(timeout=0.1)) == (503, {"error": sentence})
    monkeypatch.setattr("rankplane.serving.batching.MAX_WAITING_CHARACTERS", -1)
    assert answered(models, body)[0] == 503


def test_no_memory_is_no_end(models, monkeypatch):
    def fail(*_):
        raise MemoryError

    monkeypatch.setattr("rankplane.serving.batching.judge", fail)
    body = json.dumps({"model": "stars", "text": "abc"}).encode()
    assert answered(models, body) == (503, {"error": "There is not enough memory for this request."})
