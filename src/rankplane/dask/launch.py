"""Runs a program on Dask's workers: one long task on each, which talk to each other directly.

A task cannot be moved while it runs, and if its worker dies, those of all others end, with a checkpoint each. They stay where they
are, as futures; the next attempt goes on from them. The rows of a dead worker go to one that took its place, or to another.
"""

import logging
import secrets
import time
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any

from distributed import Client, Future, Status, get_worker, wait
from distributed.comm.addressing import get_address_host

from rankplane.distributed import FitInterruptedError, PeerLostError, Round
from rankplane.distributed.mesh import Address, Door
from rankplane.distributed.program import Program

log = logging.getLogger("distributed.worker.rankplane")  # in the logs of workers

DOORS: dict[tuple[str, int], Door] = {}  # of this worker
ATTEMPTS = 5
SECONDS_TO_RETURN = 10.0  # for a worker that died to be started again
SECONDS_TO_RECONNECT = 10.0  # for a scheduler
SECONDS_TO_CANCEL = 5.0  # for a scheduler, data that cannot be made again
SECONDS_TO_CONNECT = 300.0  # for a worker that is busy with other tasks
POLL = 0.5


class SchedulerLostError(ConnectionError):
    """The scheduler of the cluster is gone, and with it the state of the fit.

    See Also
    --------
    fit : Raises it.

    Examples
    --------
    >>> from rankplane.dask import SchedulerLostError
    >>> issubclass(SchedulerLostError, ConnectionError)
    True
    """


@dataclass
class Shard:
    """A worker with its parts, and the future of its checkpoint, if there is one."""

    worker: str
    parts: list[Any]
    checkpoint: "Future | None" = None  # as text, since Future may be a stand-in where the docs are built


def open_door(run: str, rank: int, key: bytes) -> Address:
    """On a worker: the address where others will reach this task."""
    try:
        host = get_address_host(get_worker().address)
    except (ValueError, NotImplementedError):  # workers that are threads of one process
        host = "127.0.0.1"
    door = DOORS[run, rank] = Door(host, key)
    return door.address


def run_program(
    program: Program, run: str, rank: int, addresses: Sequence[Address], parts: list[Any], before: tuple[str, Any] | None
) -> tuple[str, Any]:
    """On a worker: the fit. Returns the model, or a checkpoint if another worker was lost."""
    worker, checkpoint = get_worker(), before[1] if before is not None else None
    task = worker.get_current_task()

    def tell(report: Round) -> None:
        if worker.status not in (Status.running, Status.paused) or not is_wanted(worker, task):
            raise PeerLostError("The client or the scheduler is gone.")  # a thread cannot be stopped from outside
        log.info("worker %d of %d: %s", rank, len(addresses), report)
        if rank == 0:
            worker.log_event(run, {"round": asdict(report)})

    try:
        with DOORS.pop((run, rank)).connect(rank, addresses, SECONDS_TO_CONNECT) as mesh:
            return "done", program.run(parts, mesh, tell, checkpoint)
    except FitInterruptedError as error:
        log.warning("worker %d of %d: interrupted: %s", rank, len(addresses), error)
        return "interrupted", error.checkpoint
    except PeerLostError as error:  # before there was anything to keep
        log.warning("worker %d of %d: interrupted: %s", rank, len(addresses), error)
        return "interrupted", checkpoint


def is_wanted(worker: Any, key: Any) -> bool:
    """Whether a running task has not been cancelled."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled"


def alive(client: Client) -> list[str]:
    """Addresses of the workers there are, in a steady order."""
    workers = client.scheduler_info(n_workers=-1)["workers"]
    return sorted(workers, key=lambda address: (str(workers[address].get("name")), address))


def launch(
    client: Client, program: Program, shards: list[Shard], workers: list[str] | None, on_round: Callable[[Round], Any] | None
) -> Any:
    """Run the program until it is done, going on after the loss of workers."""
    for attempt in range(ATTEMPTS):
        outcomes = run_once(client, program, shards, on_round)
        results = [outcome for outcome in outcomes if isinstance(outcome, tuple)]
        if len(results) == len(shards) and all(status == "done" for status, _ in results):
            return results[0][1]
        check_parts(shards)
        if attempt + 1 < ATTEMPTS:
            shards = regrouped(client, shards, outcomes, workers)
    raise PeerLostError(f"Workers were lost in {ATTEMPTS} attempts in a row; see their logs.")


def run_once(client: Client, program: Program, shards: list[Shard], on_round: Callable[[Round], Any] | None) -> list[Any]:
    """One attempt. Of each shard: what came of it, or None if its worker was lost; checkpoints stay futures."""
    run, key = f"rankplane-{secrets.token_hex(8)}", secrets.token_bytes(32)

    def pass_on(event: tuple[float, dict[str, Any]]) -> None:
        if on_round is not None:
            on_round(Round(**event[1]["round"]))

    client.subscribe_topic(run, pass_on)
    try:
        doors = [
            client.submit(open_door, run, rank, key, workers=[shard.worker], key=f"{run}-door-{rank}", pure=False)
            for rank, shard in enumerate(shards)
        ]
        if await_all(client, doors, shards).count("finished") < len(shards):
            client.cancel(doors)
            return [None if shard.worker not in alive(client) else shard.checkpoint for shard in shards]
        addresses = [tuple(address) for address in client.gather(doors)]
        tasks = [
            client.submit(
                run_program,
                program,
                run,
                rank,
                addresses,
                shard.parts,
                shard.checkpoint,
                workers=[shard.worker],
                key=f"{run}-fit-{rank}",
                pure=False,
            )
            for rank, shard in enumerate(shards)
        ]
        statuses = await_all(client, tasks, shards)
        for task, status in zip(tasks, statuses, strict=True):
            if status == "error":
                error = task.exception()
                client.cancel(tasks)
                raise error
        is_done = [status == "finished" for status in statuses]
        if all(is_done):
            found = client.submit(statuses_of, tasks, key=f"{run}-statuses", pure=False).result()
            if all(status == "done" for status in found):
                return [tasks[0].result(), *[("done", None)] * (len(tasks) - 1)]
        client.cancel([task for task, done in zip(tasks, is_done, strict=True) if not done])
        return [task if done else None for task, done in zip(tasks, is_done, strict=True)]
    finally:
        if client.status == "running":
            client.unsubscribe_topic(run)


def statuses_of(outcomes: list[tuple[str, Any]]) -> list[str]:
    """On a worker: how tasks ended, without moving what they found to the client."""
    return [status for status, _ in outcomes]


def await_all(client: Client, futures: list[Future], shards: list[Shard]) -> list[str]:
    """Wait until all tasks have ended or lost their workers; how they ended: "finished", "error" or "lost"."""
    statuses: list[str] = [""] * len(futures)
    last_seen = time.monotonic()
    while not all(statuses):
        pending = [future for future, status in zip(futures, statuses, strict=True) if not status]
        with suppress(TimeoutError, CancelledError):  # cancelled with the connection, or with data that is gone
            wait(pending, timeout=POLL, return_when="FIRST_COMPLETED")
        workers = workers_if_connected(client)
        if workers is None:
            if client.status == "closed" or time.monotonic() - last_seen > SECONDS_TO_RECONNECT:
                raise SchedulerLostError("The scheduler is gone, and the fit with it: start a cluster and fit again.")
            time.sleep(POLL)
            continue
        last_seen = time.monotonic()
        for rank, future in enumerate(futures):
            if statuses[rank]:
                continue
            if future.status in ("finished", "error"):
                statuses[rank] = future.status
            elif future.status in ("cancelled", "lost") or shards[rank].worker not in workers:
                statuses[rank] = "lost"
        if "error" in statuses:
            return [status or "lost" for status in statuses]
    return statuses


def workers_if_connected(client: Client) -> list[str] | None:
    """The workers; None while there is no connection to the scheduler."""
    try:
        return alive(client) if client.status == "running" else None
    except (OSError, CancelledError):
        return None


def check_parts(shards: list[Shard]) -> None:
    """Say so if data is gone that nothing can make again.

    All futures of a dead worker are lost at first. Those that nothing can make again are then cancelled, and the others are made
    again, which may take long.
    """
    futures = [(shard.worker, [value for part in shard.parts for value in as_tuple(part)]) for shard in shards]
    until = time.monotonic() + SECONDS_TO_CANCEL
    while any(is_any(values, "lost") for _, values in futures) and time.monotonic() < until:
        time.sleep(POLL / 10)
    for worker, values in futures:
        if is_any(values, "cancelled", "error"):
            raise PeerLostError(
                f"parts must be such that Dask can make them again, as delayed objects or files. Got some that only {worker} had, "
                "which is gone."
            )


def as_tuple(part: Any) -> tuple[Any, ...]:
    return part if isinstance(part, tuple) else (part,)


def is_any(values: list[Any], *statuses: str) -> bool:
    return any(isinstance(value, Future) and value.status in statuses for value in values)


def regrouped(client: Client, shards: list[Shard], outcomes: list[Any], workers: list[str] | None) -> list[Shard]:
    """The same parts on the workers that there are now."""
    deadline = time.monotonic() + SECONDS_TO_RETURN
    while len(available(client, workers)) < len(shards) and time.monotonic() < deadline:
        time.sleep(POLL)
    here = available(client, workers)
    if not here:
        raise PeerLostError("All workers are gone.")
    kept, homeless = [], []
    for shard, outcome in zip(shards, outcomes, strict=True):
        if outcome is not None and shard.worker in here:
            kept.append(Shard(shard.worker, shard.parts, outcome))
        else:
            homeless.append(shard.parts)
    free = [worker for worker in here if worker not in {shard.worker for shard in kept}]
    for parts in homeless:
        if free:
            kept.append(Shard(free.pop(0), parts))
        else:
            # Rows after those of a checkpoint are new to it.
            fewest = min(kept, key=lambda shard: len(shard.parts))
            fewest.parts = [*fewest.parts, *parts]
    return kept


def available(client: Client, workers: list[str] | None) -> list[str]:
    """Workers that may be used. A worker that was started again has another address, but its old name."""
    found = alive(client)
    if workers is None:
        return found
    names = client.scheduler_info(n_workers=-1)["workers"]
    return [address for address in found if address in workers or str(names[address].get("name")) in workers]
