"""The process that ``rankplane serve`` starts: it loads models, forks workers, and takes no requests itself.

Model files are read into memory, since a process that maps a file dies when somebody truncates it. Workers are forked after
loading, so that all share that memory. When a file is replaced, this process loads it, forks new workers, and lets the old ones go
once the new ones are ready: no request meets a model that is being loaded. All listen on sockets that stay open here, so that a
connection that nobody has taken yet waits for whoever comes next. No threads run here, since a fork would lose them.
"""

import gc
import os
import selectors
import signal
import socket
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from rankplane.options import named
from rankplane.serving.counts import Counts
from rankplane.serving.models import ServedModel, Shelf
from rankplane.serving.options import ServerOptions, ServingError
from rankplane.serving.worker import READY, RETIRE, STOP, work
from rankplane.streams import print_error

POLL_SECONDS = 1.0  # between looks at the files of the models
START_SECONDS = 60.0  # for a worker to become ready
MAX_LOST = 5  # workers in a row that end within a second of their start
BACKLOG = 2048
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(eq=False)
class Child:
    """A worker, as the supervisor sees it."""

    pid: int
    control: socket.socket
    place: int  # which of the listening sockets it has
    row: int  # of the board
    started: float = field(default_factory=time.monotonic)
    is_ready: bool = False
    deadline: float | None = None  # by which it must have ended, once it was told to

    def tell(self, word: bytes, seconds: float) -> None:
        if self.deadline is None or word == STOP:
            self.deadline = time.monotonic() + seconds
            with suppress(OSError):
                self.control.send(word)


def open_sockets(host: str, port: int, n_sockets: int) -> list[socket.socket]:
    """Listening sockets of one port, one for each worker: with a single one, the first worker to wake up would take every
    connection that waits.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
    except OSError as error:
        raise ServingError(f"{named('host')} must be a name or an address of this machine. Got {host}: {error.strerror}.") from None
    # Only Linux shares connections out to all sockets of a port.
    shares = n_sockets > 1 and sys.platform == "linux"
    sockets: list[socket.socket] = []
    try:
        # One without sharing first, which fails if another server has the port.
        listening(family, address).close()
        for _ in range(n_sockets if shares else 1):
            # The second socket must have the port that the first one got.
            own = (address[0], sockets[0].getsockname()[1], *address[2:]) if sockets else address
            sockets.append(listening(family, own, shares))
    except OSError as error:
        for opened in sockets:
            opened.close()
        raise ServingError(f"{host} port {port} cannot be used: {(error.strerror or str(error)).lower()}.") from None
    return [sockets[place % len(sockets)] for place in range(n_sockets)]


def listening(family: int, address: Any, shares: bool = False) -> socket.socket:
    opened = socket.socket(family, socket.SOCK_STREAM)
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares:
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        if family == socket.AF_INET6:
            opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0 if address[0] == "::" else 1)
        opened.bind(address)
        opened.listen(BACKLOG)
        opened.setblocking(False)
    except OSError:
        opened.close()
        raise
    return opened


class Supervisor:
    """The life of the server."""

    def __init__(self, paths: Sequence[str], options: ServerOptions) -> None:
        self.sockets = open_sockets(options.host, options.port, options.workers)
        self.options = replace(options, port=self.sockets[0].getsockname()[1])
        self.shelf = Shelf(paths)
        self.counts = Counts(options.workers)
        for served in self.shelf.models.values():
            self.counts.declare(served)
        self.children: list[Child] = []
        self.selector = selectors.DefaultSelector()
        self.n_lost = 0
        self.signal_number = 0
        self.wakeup, self.wakeup_end = socket.socketpair()

    @property
    def address(self) -> str:
        host = self.options.host
        return f"http://{f'[{host}]' if ':' in host else host}:{self.options.port}/"

    def run(self) -> None:
        """Serve until a signal comes."""
        self.listen_to_signals()
        try:
            self.start(self.shelf.models)
            if not self.signal_number:
                self.say_where()
            while not self.signal_number:
                self.wait(POLL_SECONDS)
                self.mend()
                if not self.signal_number and not any(child.deadline is not None for child in self.children):
                    self.replace_models()
        finally:
            self.stop()

    def say_where(self) -> None:
        print(f"Serving {', '.join(self.shelf.models)} on {self.address} (Ctrl-C to stop)", flush=True)
        if self.options.is_open:
            host = self.options.host
            print_error(f"warning: whoever can reach {host} can use this server: give it a token, or a proxy that asks for one")

    def listen_to_signals(self) -> None:
        for end in (self.wakeup, self.wakeup_end):
            end.setblocking(False)
        signal.set_wakeup_fd(self.wakeup_end.fileno(), warn_on_full_buffer=False)
        for number in SIGNALS:
            if signal.getsignal(number) != signal.SIG_IGN:  # as nohup leaves them
                signal.signal(number, self.note_signal)
        self.selector.register(self.wakeup, selectors.EVENT_READ)

    def note_signal(self, number: int, frame: Any) -> None:
        self.signal_number = number
        for child in self.children:
            # The second time, in earnest.
            if child.deadline is not None:
                child.deadline = min(child.deadline, time.monotonic())

    def start(self, models: Mapping[str, ServedModel]) -> list[Child]:
        """Fork a worker for each socket, and wait until all are ready."""
        gc.unfreeze()
        gc.collect()
        gc.freeze()  # a collection writes to what it looks at, which would then no longer be shared
        started = [self.fork(models, place) for place in range(self.options.workers)]
        until = time.monotonic() + START_SECONDS
        while not all(child.is_ready for child in started):
            if self.signal_number:
                return started
            if time.monotonic() > until or any(child not in self.children for child in started):
                for child in started:
                    self.kill(child)
                raise ServingError("The workers could not be started.")
            self.wait(POLL_SECONDS)
        return started

    def fork(self, models: Mapping[str, ServedModel], place: int) -> Child:
        ours, theirs = socket.socketpair()
        row = min(set(range(1, len(self.counts.board.values))) - {child.row for child in self.children})
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            status = 1
            try:
                self.become_worker(ours)
                self.counts.board.row = row
                work(models, self.options, self.counts, self.sockets[place], theirs)
                status = 0
            except BaseException as error:
                print_error(f"a worker failed by {type(error).__name__}: {error}")
            finally:
                os._exit(status)
        theirs.close()
        child = Child(pid, ours, place, row)
        self.children.append(child)
        self.selector.register(ours, selectors.EVENT_READ, child)
        return child

    def become_worker(self, ours: socket.socket) -> None:
        """Let go of what belongs to the supervisor: no worker would notice its end while another one holds the sockets."""
        signal.set_wakeup_fd(-1)
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # Ctrl-C reaches all processes of a terminal
        for opened in (ours, self.wakeup, self.wakeup_end, *(child.control for child in self.children)):
            opened.close()
        self.selector.close()

    def wait(self, seconds: float) -> None:
        """Read what workers send, for a while."""
        now = time.monotonic()
        late = [child for child in self.children if child.deadline is not None]
        for child in late:
            if child.deadline is not None and child.deadline <= now:
                self.kill(child)
        seconds = min([seconds, *(child.deadline - now for child in late if child.deadline is not None)])
        for key, _ in self.selector.select(max(seconds, 0)):
            if key.data is None:
                with suppress(OSError):
                    self.wakeup.recv(1024)
                continue
            self.read_from(key.data)

    def read_from(self, child: Child) -> None:
        """A worker is ready, or has ended."""
        try:
            word = child.control.recv(1)
        except OSError:
            word = b""
        if word == READY:
            child.is_ready = True
        elif not word:
            self.bury(child)
            if child.deadline is None:
                self.n_lost = self.n_lost + 1 if time.monotonic() - child.started < 1 else 1
                self.counts.board.add(self.counts.lost)

    def bury(self, child: Child) -> int:
        self.selector.unregister(child.control)
        child.control.close()
        self.children.remove(child)
        return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])

    def kill(self, child: Child) -> None:
        if child in self.children:
            with suppress(ProcessLookupError):
                os.kill(child.pid, signal.SIGKILL)
            self.bury(child)

    def mend(self) -> None:
        """Fork another worker for each that crashed, unless they all do."""
        there = {child.place for child in self.children if child.deadline is None}
        for place in set(range(self.options.workers)) - there:
            if self.signal_number:
                return
            if self.n_lost >= MAX_LOST:
                raise ServingError(f"{MAX_LOST} workers in a row ended as soon as they had started.")
            print_error("a worker ended and was replaced")
            self.fork(self.shelf.models, place)

    def replace_models(self) -> None:
        """Take replaced files into use. A file that cannot be used changes nothing."""
        models = dict(self.shelf.models)
        for name in self.shelf.replaced():
            try:
                models[name] = self.shelf.read_again(name)
            except (ValueError, TypeError, OSError, MemoryError) as error:
                self.counts.board.add(self.counts.replacements[name, False])
                print_error(f"{name} is not replaced: {error}")
        new = [name for name, served in models.items() if served is not self.shelf.models[name]]
        if not new:
            return
        for name in new:
            self.counts.declare(models[name])
        retired = list(self.children)
        try:
            started = self.start(models)
        except ServingError as error:
            for name in new:
                self.counts.board.add(self.counts.replacements[name, False])
                print_error(f"{name} is not replaced: {error}")
            return
        if not all(child.is_ready for child in started):  # since a signal came
            return
        self.shelf.models = models
        for child in retired:
            child.tell(RETIRE, 10 + 3 * self.options.timeout)
        for name in new:
            self.counts.board.add(self.counts.replacements[name, True])
            print(f"Replaced {name}: version {models[name].version}", flush=True)

    def stop(self) -> None:
        """Let all workers answer what they have, and end."""
        for opened in set(self.sockets):  # from now on, clients are refused at once
            opened.close()
        for child in self.children:
            child.tell(STOP, 5 + 2 * self.options.timeout)
        while self.children:
            self.wait(POLL_SECONDS)
        for opened in (self.wakeup, self.wakeup_end):
            opened.close()
        self.selector.close()
        signal.set_wakeup_fd(-1)
        gc.unfreeze()
