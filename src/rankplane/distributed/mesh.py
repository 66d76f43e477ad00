"""Workers as processes, each connected with every other, for launchers: Dask and Spark start them and tell them of each other.

A launcher opens a ``Door`` on every worker, collects the addresses, and gives them to all: ``door.connect(rank, addresses)`` is the
``Comm``. Connections are those of the standard library: whoever has not got the key of the run is turned away. What travels is
numbers, in the clear.

Workers meet pair by pair. In step s worker i meets worker ``s - i``, counted round the circle, so both know of each other, and the
lower one speaks first: nobody waits in a ring.
"""

import os
import socket
import struct
import time
from collections.abc import Sequence
from multiprocessing import AuthenticationError
from multiprocessing.connection import Client, Connection, answer_challenge, deliver_challenge
from typing import Any, Self

import numpy as np

from rankplane.distributed.comm import Array, Bytes, PeerLostError, add_up

SMALL = 1 << 16  # bytes, of which every worker gets all instead of a share: fewer meetings
HANDSHAKE_SECONDS = 10.0
SILENT_SECONDS = 60  # after which the system asks whether a machine is still there; its answer needs no process
Address = tuple[str, int]


class Door:
    """Where a worker waits for the others."""

    def __init__(self, host: str, key: bytes) -> None:
        self._socket = socket.create_server((host, 0), backlog=256)
        self._key = key
        self.address: Address = (host, self._socket.getsockname()[1])

    def connect(self, rank: int, addresses: Sequence[Address], timeout: float = 300.0) -> "Mesh":
        """Connect with all workers: those before this one are called, those after it call.

        ``timeout`` is how many seconds they may take to come.
        """
        peers: dict[int, Connection] = {}
        try:
            for other in range(rank):
                peers[other] = Client(addresses[other], authkey=self._key)
                peers[other].send_bytes(rank.to_bytes(4, "little"))
            deadline = time.monotonic() + timeout
            while len(peers) < len(addresses) - 1:
                self._socket.settimeout(max(0.01, deadline - time.monotonic()))
                accepted, _ = self._socket.accept()
                caller = Connection(accepted.detach())
                number = greet(caller, self._key)
                if number is None or not rank < number < len(addresses) or number in peers:
                    caller.close()
                else:
                    peers[number] = caller
            for peer in peers.values():
                set_patience(peer, 0)
        except (OSError, EOFError) as error:
            for peer in peers.values():
                peer.close()
            raise PeerLostError(f"Worker {rank} cannot reach the others: {error or type(error).__name__}.") from error
        finally:
            self.close()
        return Mesh(rank, peers)

    def close(self) -> None:
        self._socket.close()


def greet(caller: Connection, key: bytes) -> int | None:
    """The number of a worker that calls; None for strangers."""
    set_patience(caller, HANDSHAKE_SECONDS)
    try:
        deliver_challenge(caller, key)
        answer_challenge(caller, key)
        return int.from_bytes(caller.recv_bytes(4), "little")
    except (AuthenticationError, OSError, EOFError, ValueError):
        return None


def set_patience(connection: Connection, seconds: float) -> None:
    """How long to wait for a message; 0 is for ever, as long as the machine is there."""
    with socket.socket(fileno=os.dup(connection.fileno())) as same:
        same.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", int(seconds), 0))
        same.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if hasattr(socket, "TCP_KEEPIDLE"):
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, SILENT_SECONDS)
            same.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, SILENT_SECONDS // 6)


class Mesh:
    """A ``Comm`` of connected workers. Counts the bytes it sends."""

    def __init__(self, rank: int, peers: dict[int, Connection]) -> None:
        self.rank = rank
        self.size = len(peers) + 1
        self.n_bytes_sent = 0
        self._peers = peers

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for peer in self._peers.values():
            peer.close()

    def allreduce(self, array: Array) -> Array:
        if self.size == 1:
            return array
        own = np.ascontiguousarray(array)
        if own.nbytes <= SMALL:
            parts = self.exchange([as_bytes(own)] * self.size)
            return add_up([as_array(part, own.dtype) for part in parts]).reshape(own.shape)
        # Each worker adds up a share, and hands its sum to all.
        shares = np.array_split(own.ravel(), self.size)
        received = self.exchange([as_bytes(share) for share in shares])
        total = add_up([as_array(part, own.dtype) for part in received])
        sums = self.exchange([as_bytes(total)] * self.size)
        return np.concatenate([as_array(part, own.dtype) for part in sums]).reshape(own.shape)

    def broadcast(self, array: Array, root: int) -> Array:
        own = np.ascontiguousarray(array)
        if self.rank == root:
            for other in self._others():
                self._send(other, as_bytes(own))
            return own
        return as_array(self._receive(root), own.dtype).reshape(own.shape)

    def exchange(self, parts: Sequence[Bytes]) -> list[Bytes]:
        received: list[Any] = [None] * self.size
        received[self.rank] = parts[self.rank]
        for other in self._others():
            if self.rank < other:
                self._send(other, parts[other])
                received[other] = self._receive(other)
            else:
                received[other] = self._receive(other)
                self._send(other, parts[other])
        return received

    def _others(self) -> list[int]:
        """In the order in which this worker meets them."""
        return [other for step in range(self.size) if (other := (step - self.rank) % self.size) != self.rank]

    def _send(self, other: int, part: Bytes) -> None:
        try:
            self._peers[other].send_bytes(np.ascontiguousarray(part).data)
        except OSError as error:
            raise PeerLostError(f"Worker {other} is gone: {error}") from error
        self.n_bytes_sent += part.nbytes

    def _receive(self, other: int) -> Bytes:
        try:
            return np.frombuffer(self._peers[other].recv_bytes(), dtype=np.uint8)
        except (OSError, EOFError) as error:
            raise PeerLostError(f"Worker {other} is gone.") from error


def as_bytes(array: Array) -> Bytes:
    return array.reshape(-1).view(np.uint8)


def as_array(part: Bytes, dtype: Any) -> Array:
    return np.frombuffer(part.data, dtype=dtype)
