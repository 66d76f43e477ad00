"""A server as tests run it: a process of its own on a free port, asked over real connections."""

import http.client
import json
import re
import signal
import socket
import subprocess
import time
from contextlib import contextmanager

from command import COMMAND


class Server:
    def __init__(self, process):
        self.process = process
        line = process.stdout.readline()
        found = re.fullmatch(r"Serving (.+) on http://127\.0\.0\.1:(\d+)/ \(Ctrl-C to stop\)\n", line)
        assert found, (line, process.stderr.read())
        self.names, self.port = found[1].split(", "), int(found[2])

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}/"

    def connect(self, timeout=30):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body of the answer, on a connection of its own."""
        connection = self.connect()
        try:
            return asked(connection, method, path, body, headers)
        finally:
            connection.close()

    def predict(self, **question):
        status, _, answer = self.ask("POST", "/predict", question)
        assert status == 200, answer
        return answer

    def refusal(self, status, body, headers=None):
        """The sentence of an answer with this status."""
        found, _, answer = self.ask("POST", "/predict", body, headers)
        assert found == status, answer
        assert list(answer) == ["error"]
        return answer["error"]

    def metrics(self):
        """Values by series, as in the exposition."""
        _, _, text = self.ask("GET", "/metrics")
        lines = [line for line in text.splitlines() if not line.startswith("#")]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    def send(self, data, timeout=30):
        """All that comes back for bytes that need not be HTTP."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=timeout) as connection:
            connection.sendall(data)
            found = b""
            while chunk := connection.recv(65536):
                found += chunk
        return found

    def workers(self):
        """Their process ids."""
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as file:
            return list(map(int, file.read().split()))

    def stop(self, number=signal.SIGTERM):
        """End the server; returns its exit code, and what it said in all."""
        self.process.send_signal(number)
        said = self.process.communicate(timeout=60)
        return self.process.returncode, *said


def asked(connection, method, path, body=None, headers=None):
    data = body if isinstance(body, bytes | None) else json.dumps(body).encode()
    kind = {} if body is None else {"Content-Type": "application/json"}
    connection.request(method, path, data, {**kind, **(headers or {})})
    response = connection.getresponse()
    content = response.read()
    is_json = response.headers.get("Content-Type") == "application/json"
    return response.status, response.headers, json.loads(content) if is_json else content.decode()


def until(condition, seconds=30):
    """Wait, with a bound on a hang rather than a timing."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end
        time.sleep(0.02)
    return found


@contextmanager
def serving(*arguments, **options):
    """A server that ends with the block."""
    command = [*COMMAND, "serve", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
    try:
        yield Server(process)
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
