"""A worker: uvicorn on sockets that the supervisor opened, with models that it loaded.

uvicorn parses HTTP and runs the event loop. What is added here keeps connections from being abused or lost: heads of requests that
never end or grow without bound, too many connections, and a way to stop that answers what has been sent already.
"""

import asyncio
import os
import resource
import signal
import socket
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, cast

import httptools
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from rankplane.serving.answers import dumped
from rankplane.serving.app import Service
from rankplane.serving.counts import Counts
from rankplane.serving.models import ServedModel
from rankplane.serving.options import ServerOptions
from rankplane.solver.blas import one_thread

READY, RETIRE, STOP = b"!", b"r", b"s"
MAX_HEAD = 64 * 1024
MAX_CONNECTIONS = 2000
SPARE_FILES = 100  # that a process may have open beside its connections
IDLE_SECONDS = 5.0  # after which a connection without requests is closed
STOP_SECONDS = 0.5  # the same, once the server is stopped
SWITCH_SECONDS = 0.0005  # how long the thread may keep the interpreter from the event loop


class Corked:
    """A transport that keeps the head of an answer until its body comes, since uvicorn hands them over one by one: two writes are
    two packets, and the client wakes up for each.
    """

    def __init__(self, transport: Any) -> None:
        self.transport = transport
        self.kept: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.kept.append(data)
        if data.startswith(b"HTTP/1.1 100 "):  # the client sends its body after this one
            self.flush()

    def flush(self) -> None:
        data = b"".join(self.kept)
        self.kept.clear()
        if data and not self.transport.is_closing():  # as it is once the client has gone
            self.transport.write(data)

    def close(self) -> None:
        self.flush()
        self.transport.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self.transport, name)


class Parser(httptools.HttpRequestParser):
    """Ignores offers to go on in another protocol, which some clients make with each request. httptools would take the body for
    that protocol, so the request is read again, without the offer.
    """

    def __init__(self, connection: "Connection") -> None:
        self.connection = connection
        self.start()

    def start(self) -> None:
        super().__init__(self.connection)
        self.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn sets them

    def feed_data(self, data: Any) -> None:
        rest = memoryview(data)
        while True:
            try:
                super().feed_data(rest)
                return
            except httptools.HttpParserUpgrade as offer:
                head = self.connection.head_without_offer()
                self.start()  # or else it reads no further if the connection is to be closed
                super().feed_data(head)
                rest = rest[offer.args[0] :]


class Connection(HttpToolsProtocol):
    """A connection of a client."""

    head_seconds: ClassVar[float] = 10.0
    max_connections: ClassVar[int] = MAX_CONNECTIONS
    is_ending: ClassVar[bool] = False
    head_timer: asyncio.TimerHandle | None = None
    is_in_head = False
    n_head = n_chunk = 0  # bytes of the head so far, and of what has just arrived

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self.parser = Parser(self)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(cast(asyncio.Transport, Corked(transport)))
        if len(self.connections) > self.max_connections:
            self.refuse(503, "Service Unavailable", "The server has more connections than it can: try again later.")
            return
        self.expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self.forget_timer()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        self.n_chunk = len(data)
        super().data_received(data)
        if self.is_in_head:
            self.n_head += len(data)
            if self.n_head > MAX_HEAD:
                self.refuse_head()

    def refuse_head(self) -> None:
        self.refuse(431, "Request Header Fields Too Large", f"The head of a request must have at most {MAX_HEAD:,} bytes.")

    def on_message_begin(self) -> None:
        self.is_in_head, self.n_head = True, 0
        self.expect_head()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self.is_in_head = False
        self.forget_timer()
        if self.n_head + self.n_chunk > MAX_HEAD and self.head_bytes() > MAX_HEAD:  # it arrived at once, or its end did
            self.refuse_head()
            raise httptools.HttpParserError("the head is too large")
        if self.parser.should_upgrade():
            return
        super().on_headers_complete()
        if self.is_ending:
            self.cycle.keep_alive = False

    def head_bytes(self) -> int:
        return len(self.url) + sum(len(name) + len(value) + len(": \r\n") for name, value in self.headers)

    def on_message_complete(self) -> None:
        if not self.parser.should_upgrade():
            super().on_message_complete()

    def head_without_offer(self) -> bytes:
        """The head of a request that offers another protocol, without that."""
        method = self.parser.get_method()
        if method == b"CONNECT":
            raise httptools.HttpParserError("a tunnel is no offer")
        lines = [b"%s %s HTTP/%s" % (method, self.url, self.parser.get_http_version().encode())]
        for name, value in self.headers:
            if name == b"connection":
                value = b", ".join(word for word in value.split(b",") if word.strip().lower() != b"upgrade")
            if name != b"upgrade":
                lines.append(b"%s: %s" % (name, value))
        return b"\r\n".join([*lines, b"", b""])

    def on_response_complete(self) -> None:
        cast(Corked, self.transport).flush()
        super().on_response_complete()

    def expect_head(self) -> None:
        self.forget_timer()
        self.head_timer = self.loop.call_later(self.head_seconds, self.head_is_late)

    def forget_timer(self) -> None:
        if self.head_timer is not None:
            self.head_timer.cancel()
            self.head_timer = None

    def head_is_late(self) -> None:
        if not self.is_in_head:  # nothing was sent at all
            self.transport.close()
            return
        self.refuse(408, "Request Timeout", f"The request did not arrive within {self.head_seconds:g} seconds.")

    def send_400_response(self, msg: str) -> None:
        self.refuse(400, "Bad Request", "The request is not valid HTTP.")

    def refuse(self, status: int, phrase: str, sentence: str) -> None:
        """Answer what never became a request."""
        if self.transport.is_closing():
            return
        body = dumped({"error": sentence})
        fields = f"content-type: application/json\r\ncontent-length: {len(body)}\r\nconnection: close"
        self.transport.write(f"HTTP/1.1 {status} {phrase}\r\n{fields}\r\n\r\n".encode() + body)
        self.transport.close()

    def end(self) -> None:
        """Make the answer to the request at hand the last one. Without one, the client may be sending the next right now."""
        if self.cycle is not None and not self.cycle.response_complete:
            self.cycle.keep_alive = False


class Worker(uvicorn.Server):
    """Answers requests until the supervisor says that it is replaced, or that the server ends, or is gone."""

    def __init__(self, service: Service, control: socket.socket, connection: type[Connection]) -> None:
        config = uvicorn.Config(
            service.app(),
            loop="uvloop",
            http=connection,
            ws="none",
            lifespan="off",
            log_config=None,
            log_level="critical",  # what is worth a line, the app says
            access_log=False,
            proxy_headers=False,
            server_header=False,
            timeout_keep_alive=int(IDLE_SECONDS),
        )
        super().__init__(config)
        self.service = service
        self.control = control
        self.connection = connection
        self.linger = STOP_SECONDS

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield  # the supervisor has signals; a worker is told

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        loop = asyncio.get_running_loop()
        loop.add_reader(self.control, self.told)
        loop.add_signal_handler(signal.SIGTERM, self.end, STOP_SECONDS)
        self.control.send(READY)

    def told(self) -> None:
        try:
            word = self.control.recv(1)
        except OSError:
            word = b""
        if not word:  # the supervisor is gone
            asyncio.get_running_loop().remove_reader(self.control)
        self.end(IDLE_SECONDS + 1 if word == RETIRE else STOP_SECONDS)

    def end(self, linger: float) -> None:
        self.linger = linger
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no new connections, answer what comes on those that there are, and close each after its answer.

        To close a connection while the client sends its next request would lose that. So idle ones are left to time out.
        """
        for server in self.servers:
            server.close()
        self.service.is_ending = self.connection.is_ending = True
        for connection in list(self.server_state.connections):
            connection.end()  # type: ignore[union-attr]
        loop = asyncio.get_running_loop()
        idle_until = loop.time() + self.linger
        all_until = idle_until + 2 * self.service.options.timeout
        while self.server_state.connections and loop.time() < all_until:
            if loop.time() > idle_until and not self.server_state.tasks:
                break
            await asyncio.sleep(0.02)
        for connection in list(self.server_state.connections):
            connection.transport.close()
        await asyncio.sleep(0)


def work(
    models: Mapping[str, ServedModel], options: ServerOptions, counts: Counts, listening: socket.socket, control: socket.socket
) -> None:
    """The life of a worker, after the fork."""
    sys.setswitchinterval(SWITCH_SECONDS)
    service = Service(models, options, counts)
    # Beyond the files that a process may open, connections would be left to wait without an answer.
    n_files = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - SPARE_FILES
    limits = {"head_seconds": options.timeout, "max_connections": max(1, min(MAX_CONNECTIONS, n_files))}
    connection = type("Connection", (Connection,), limits)
    with one_thread():  # set once for all predictions, each of which would set it
        Worker(service, control, connection).run([listening])
    service.executor.shutdown(wait=False, cancel_futures=True)
    os.close(control.detach())
