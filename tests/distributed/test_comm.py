"""The four things that workers need of whoever launched them, as threads of a process and as processes."""

import multiprocessing.connection
import secrets
import socket
import threading

import numpy as np
import pytest

from rankplane.distributed import PeerLostError, Threads
from rankplane.distributed.comm import Alone, exchange, gather, gather_rows, gather_values, share, share_array, together
from rankplane.distributed.mesh import Door


class Four:
    """Only what a ``Comm`` must have."""

    def __init__(self, comm):
        self.rank, self.size = comm.rank, comm.size
        self.allreduce, self.broadcast = comm.allreduce, comm.broadcast


def run(size, work):
    return [work(Alone())] if size == 0 else Threads(size).run(work)


def in_mesh(size, work, wrap=lambda comm: comm):
    """Each worker in a thread of its own, over real connections."""
    key = secrets.token_bytes(16)
    doors = [Door("127.0.0.1", key) for _ in range(size)]
    addresses = [door.address for door in doors]
    found = [None] * size

    def one(rank):
        with doors[rank].connect(rank, addresses, timeout=20) as mesh:
            found[rank] = work(wrap(mesh))

    threads = [threading.Thread(target=one, args=(rank,)) for rank in range(size)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def use_all(comm):
    large = np.arange(50_000, dtype=np.float64) * (comm.rank + 1)
    return {
        "small": comm.allreduce(np.full((2, 3), comm.rank, dtype=np.int64)).tolist(),
        "large": comm.allreduce(large).sum(),
        "bits": comm.allreduce(np.sin(large)).tobytes(),
        "broadcast": [comm.broadcast(np.array([comm.rank, 7.5]), root).tolist() for root in range(comm.size)],
        "gather": [part.tolist() for part in gather(comm, np.arange(comm.rank, dtype=np.float32))],
        "rows": gather_rows(comm, np.full((comm.rank, 2), comm.rank)).tolist(),
        "values": gather_values(comm, {"näme": comm.rank}),
        "share": share(comm, ["text", None, 1.5] if comm.rank == comm.size - 1 else None, comm.size - 1),
        "array": share_array(comm, np.eye(2, dtype=np.float32) if comm.rank == 0 else None, 0).tolist(),
        "exchange": [bytes(part) for part in exchange(comm, [np.full(comm.rank, to, np.uint8) for to in range(comm.size)])],
    }


@pytest.mark.parametrize("launch", [Threads.run, in_mesh], ids=["threads", "mesh"])
@pytest.mark.parametrize("wrap", [lambda comm: comm, Four], ids=["with exchange", "four members"])
@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_all_workers_agree(size, wrap, launch):
    found = in_mesh(size, use_all, wrap) if launch is in_mesh else Threads(size).run(lambda comm: use_all(wrap(comm)))
    for rank, own in enumerate(found):
        assert own.pop("exchange") == [bytes([rank] * other) for other in range(size)]
        assert own == found[0]
    assert own["small"] == [[sum(range(size))] * 3] * 2
    assert own["large"] == 50_000 * 49_999 / 2 * sum(range(1, size + 1))
    assert own["broadcast"] == [[root, 7.5] for root in range(size)]
    assert own["gather"] == [list(range(rank)) for rank in range(size)]
    assert own["rows"] == [[rank] * 2 for rank in range(size) for _ in range(rank)]
    assert own["values"] == [{"näme": rank} for rank in range(size)]
    assert own["share"] == ["text", None, 1.5]
    assert own["array"] == [[1, 0], [0, 1]]


def test_one_refusal_is_everybodys():
    def work(comm):
        def refuse_on_one():
            if comm.rank == 1:
                raise ValueError("C must be a positive number. Got -1.")
            return comm.rank

        with pytest.raises(ValueError, match=r"^Worker 1: C must be a positive number. Got -1.$"):
            together(comm, refuse_on_one)
        return together(comm, lambda: comm.rank)

    assert Threads(3).run(work) == [0, 1, 2]
    with pytest.raises(ValueError, match=r"^No worker is named where there is one.$"):
        together(Alone(), lambda: (_ for _ in ()).throw(ValueError("No worker is named where there is one.")))


def test_threads_learn_that_one_has_failed():
    def work(comm):
        if comm.rank == 2:
            raise RuntimeError("out of luck")
        comm.allreduce(np.ones(1))

    with pytest.raises(RuntimeError, match="out of luck"):
        Threads(3).run(work)


def test_a_lost_peer_is_noticed():
    def work(comm):
        comm.allreduce(np.ones(3))
        if comm.rank == 1:
            return "gone"
        with pytest.raises(PeerLostError, match=r"Worker 1 is gone"):
            [comm.allreduce(np.ones(100_000)) for _ in range(100)]
        return "noticed"

    assert in_mesh(2, work) == ["noticed", "gone"]


def call_without_key(address):
    with pytest.raises((multiprocessing.AuthenticationError, OSError, EOFError)):
        multiprocessing.connection.Client(address, authkey=b"no")


def test_strangers_are_turned_away():
    key = secrets.token_bytes(16)
    doors = [Door("127.0.0.1", key) for _ in range(2)]
    stranger = socket.create_connection(doors[0].address)
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    impostor = threading.Thread(target=call_without_key, args=(doors[0].address,))
    impostor.start()
    addresses = [door.address for door in doors]
    found = []
    threads = [threading.Thread(target=lambda r=r: found.append(doors[r].connect(r, addresses, timeout=20))) for r in range(2)]
    for thread in threads:
        thread.start()
    for thread in (*threads, impostor):
        thread.join()
    assert sorted(mesh.size for mesh in found) == [2, 2]
    stranger.close()
    for mesh in found:
        mesh.__exit__()


def test_workers_that_do_not_come_are_not_awaited_for_ever():
    door = Door("127.0.0.1", b"key")
    with pytest.raises(PeerLostError, match="cannot reach the others"):
        door.connect(0, [door.address, ("127.0.0.1", 9)], timeout=0.2)
