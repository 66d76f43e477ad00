"""Small requests are predicted together and at once, large ones elsewhere and in order, and none suffers for another."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp

from rankplane.serving import batching
from rankplane.serving.batching import Batcher, joined
from rankplane.serving.errors import RequestError
from rankplane.serving.models import ServedModel
from rankplane.serving.questions import Question


@pytest.fixture(scope="module")
def served(stars):
    return ServedModel.read("stars", str(stars))


def question(served, *texts, coverage=None):
    return Question(served, "texts", list(texts), len(texts), sum(map(len, texts)), coverage, False)


@pytest.fixture
def batcher(served):
    with ThreadPoolExecutor(1) as pool:
        found = Batcher(served, pool, lambda n_rows: found.batches.append(n_rows))
        found.batches = []
        found.rate = 1e-9  # known and small, so that all is done on the event loop
        yield found


def test_what_arrives_together_is_one_batch(batcher, served):
    texts = ["great", "awful", "", "superb phone"] * 5
    expected = served.model.predict(served.model.transform(texts)).tolist()

    async def all_at_once():
        return await asyncio.gather(
            *(batcher.predict(question(served, text, coverage=0.9 if n % 2 else None)) for n, text in enumerate(texts))
        )

    answers = asyncio.run(all_at_once())
    assert [answer.ranks[0] for answer in answers] == expected
    assert batcher.batches == [20]
    assert [answer.members is None for answer in answers] == [True, False] * 10
    for answer in answers[1::2]:
        assert answer.members.any()


def test_batches_have_a_limit(batcher, served, monkeypatch):
    monkeypatch.setattr(batching, "MAX_BATCH_ROWS", 4)

    async def all_at_once():
        return await asyncio.gather(*(batcher.predict(question(served, "great", "awful")) for _ in range(5)))

    assert len(asyncio.run(all_at_once())) == 5
    assert batcher.batches == [4, 4, 2]


def test_small_requests_do_not_wait_for_large_ones(batcher, served, monkeypatch):
    """The large one waits until the small one has been answered, which would take for ever if it were the other way round."""
    real, is_answered, threads = batching.judge, threading.Event(), []

    def judge(model, questions):
        threads.append(threading.current_thread())
        if questions[0].n_characters > 1000:
            assert is_answered.wait(30)
        return real(model, questions)

    monkeypatch.setattr(batching, "judge", judge)

    async def both():
        batcher.rate = 1e-7
        large = asyncio.ensure_future(batcher.predict(question(served, "great " * 10_000)))
        await asyncio.sleep(0)
        small = await batcher.predict(question(served, "awful"))
        is_answered.set()
        return small, await large

    small, large = asyncio.run(both())
    assert (len(small.ranks), len(large.ranks)) == (1, 1)
    assert threads[1] is threading.main_thread()
    assert threads[0] is not threads[1]


def test_the_first_request_shows_how_long_they_take(batcher, served):
    batcher.rate = np.inf
    asyncio.run(batcher.predict(question(served, "great")))
    assert 0 < batcher.rate < 1


def test_one_that_fails_does_not_spoil_the_others(batcher, served, monkeypatch):
    real = batching.judge

    def judge(model, questions):
        if any("bad" in text for asked in questions for text in asked.features):
            raise ValueError("a bad text")
        return real(model, questions)

    monkeypatch.setattr(batching, "judge", judge)

    async def all_at_once():
        asked = [batcher.predict(question(served, text)) for text in ("great", "bad", "awful")]
        return await asyncio.gather(*asked, return_exceptions=True)

    first, second, third = asyncio.run(all_at_once())
    assert (len(first.ranks), len(third.ranks)) == (1, 1)
    assert str(second) == "a bad text"


def test_clients_that_gave_up_cost_nothing(batcher, served, monkeypatch):
    asked = []
    monkeypatch.setattr(batching, "judge", lambda model, questions: asked.append(questions) or [])

    async def give_up():
        task = asyncio.ensure_future(batcher.predict(question(served, "great")))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(give_up())
    assert asked == []
    assert batcher.n_waiting == 0


def test_too_much_is_refused(batcher, served, monkeypatch):
    monkeypatch.setattr(batching, "MAX_WAITING_CHARACTERS", 8)

    async def all_at_once():
        asked = [batcher.predict(question(served, "great")) for _ in range(3)]
        return await asyncio.gather(*asked, return_exceptions=True)

    *answered, refused = asyncio.run(all_at_once())
    assert all(len(answer.ranks) == 1 for answer in answered)
    assert isinstance(refused, RequestError)
    assert refused.status == 503


def test_features_of_several_questions_are_one():
    assert joined("text", [["a"], ["b", "c"]]) == ["a", "b", "c"]
    assert joined("table", [{"age": [1]}, {"age": [2, 3]}]) == {"age": [1, 2, 3]}
    both = joined("numbers", [sp.csr_matrix([[1.0]]), sp.csr_matrix([[0.0, 2.0], [3.0, 0.0]])])
    assert both.toarray().tolist() == [[1, 0], [0, 2], [3, 0]]
