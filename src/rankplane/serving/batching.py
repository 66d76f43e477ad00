"""Small requests are predicted together: a prediction costs about as much for ten short texts as for one.

Nothing ever waits for others to come. Requests that arrive in the same turn of the event loop make a batch, which is predicted at
once, on the event loop, as long as that takes no longer than `TURN_SECONDS`. Larger work goes to a thread, in order, and what
arrives while the thread is busy makes its next batch. A request thus waits for at most the batch before its own, and small requests
never wait for large ones. When more rows wait than a few batches hold, requests are refused, rather than left to wait.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane.inputs.reading import widened
from rankplane.serving.errors import RequestError
from rankplane.serving.models import ServedModel
from rankplane.serving.questions import Question
from rankplane.training.rows import transformed_rows

TURN_SECONDS = 0.001  # how long the event loop may be held up
MAX_BATCH_ROWS = 1024
MAX_WAITING_CHARACTERS = 20_000_000
FIXED = 2000  # characters' worth of work that any batch is
ANY_COVERAGE = 0.5  # of sets that nobody asked for
SMOOTHING = 0.2


@dataclass(frozen=True, eq=False)
class Judged:
    """The predictions for the rows of one question."""

    ranks: list[Any]
    probabilities: list[list[float]]
    members: NDArray[np.bool_] | None  # which ranks are in the set of each row


@dataclass(frozen=True, eq=False)
class Job:
    question: Question
    done: asyncio.Future[Judged]


def joined(kind: str, features: Sequence[Any]) -> Any:
    """The features of several questions as those of one."""
    if len(features) == 1:
        return features[0]
    if kind == "text":
        return [text for texts in features for text in texts]
    if kind in ("table", "mixed"):
        return {name: [value for columns in features for value in columns[name]] for name in features[0]}
    width = max(matrix.shape[1] for matrix in features)
    return sp.vstack([widened(matrix, width) for matrix in features], format="csr")


def judge(served: ServedModel, questions: Sequence[Question]) -> list[Judged]:
    """Predict all rows of some questions to the same model at once."""
    X = transformed_rows(served.model, joined(served.kind, [question.features for question in questions]))
    ranks, probabilities = served.model.predict_both(X)
    members = None
    if any(question.coverage is not None for question in questions):
        rules = [served.set_rule(question.coverage or ANY_COVERAGE) for question in questions]
        limits = np.repeat([rule.thresholds for rule in rules], [question.n_rows for question in questions], axis=0)
        members = rules[0].sets(probabilities, limits)
    shares, labels = np.round(probabilities, 6).tolist(), ranks.tolist()
    judged, start = [], 0
    for question in questions:
        end = start + question.n_rows
        own = members[start:end] if members is not None and question.coverage is not None else None
        judged.append(Judged(labels[start:end], shares[start:end], own))
        start = end
    return judged


class Batcher:
    """Predicts the questions to one model, from one event loop."""

    def __init__(self, served: ServedModel, executor: Executor, on_batch: Callable[[int], None]) -> None:
        self.served = served
        self.executor = executor
        self.on_batch = on_batch  # called with the number of rows of each batch
        self.small: deque[Job] = deque()
        self.large: deque[Job] = deque()
        self.n_waiting = 0  # characters
        self.rate = np.inf  # seconds per character; unknown until the first batch
        self.is_scheduled = self.is_busy = False

    async def predict(self, question: Question) -> Judged:
        if not question.n_rows:
            return Judged([], [], np.empty((0, len(self.served.ranks)), dtype=bool))
        if self.n_waiting > MAX_WAITING_CHARACTERS:
            raise RequestError(503, "The server has more to predict than it can: try again later.", {"Retry-After": "1"})
        loop = asyncio.get_running_loop()
        job = Job(question, loop.create_future())
        is_small = self.seconds(question.n_characters) <= TURN_SECONDS / 2
        (self.small if is_small else self.large).append(job)
        self.n_waiting += question.n_characters
        if not is_small:
            self.start_large()
        elif not self.is_scheduled:
            self.is_scheduled = True
            # After all requests that have arrived by now were read.
            loop.call_soon(self.predict_small)
        return await job.done

    def seconds(self, n_characters: int) -> float:
        return float(self.rate) * (FIXED + n_characters)

    def taken(self, waiting: deque[Job], seconds: float) -> list[Job]:
        """The first jobs, as many as make a batch; those whose clients have gone are dropped."""
        batch: list[Job] = []
        n_rows = n_characters = 0
        while waiting:
            question = waiting[0].question
            is_full = n_rows + question.n_rows > MAX_BATCH_ROWS or self.seconds(n_characters + question.n_characters) > seconds
            if batch and is_full:
                break
            job = waiting.popleft()
            self.n_waiting -= question.n_characters
            if not job.done.done():
                batch.append(job)
                n_rows += question.n_rows
                n_characters += question.n_characters
        return batch

    def predict_small(self) -> None:
        batch = self.taken(self.small, TURN_SECONDS)
        if batch:
            self.finish(batch, self.answer(batch))
        self.is_scheduled = bool(self.small)
        if self.is_scheduled:
            asyncio.get_running_loop().call_soon(self.predict_small)

    def start_large(self) -> None:
        if self.is_busy:
            return
        batch = self.taken(self.large, np.inf)
        if not batch:
            return
        self.is_busy = True
        loop = asyncio.get_running_loop()
        loop.run_in_executor(self.executor, self.answer, batch).add_done_callback(lambda found: self.finish_large(batch, found))

    def finish_large(self, batch: list[Job], found: asyncio.Future[Any]) -> None:
        self.is_busy = False
        if not found.cancelled():
            self.finish(batch, found.result())
        self.start_large()

    def answer(self, batch: list[Job]) -> list[Judged | Exception]:
        """Answers in the order of the batch. If it fails as a whole, each question is asked alone: others must not suffer."""
        questions = [job.question for job in batch]
        start = time.thread_time()
        try:
            answers: list[Judged | Exception] = list(judge(self.served, questions))
        except Exception as error:
            if len(batch) == 1:
                return [error]
            return [self.answer([job])[0] for job in batch]
        n_characters = sum(question.n_characters for question in questions)
        rate = (time.thread_time() - start) / (FIXED + n_characters)
        self.rate = rate if np.isinf(self.rate) else (1 - SMOOTHING) * self.rate + SMOOTHING * rate
        return answers

    def finish(self, batch: list[Job], answers: list[Judged | Exception]) -> None:
        self.on_batch(sum(job.question.n_rows for job in batch))
        for job, answer in zip(batch, answers, strict=True):
            if job.done.done():
                continue
            if isinstance(answer, Exception):
                job.done.set_exception(answer)
            else:
                job.done.set_result(answer)
