"""What a server predicts is what the model predicts, however requests arrive."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from rankplane import load_model, predict_rows
from reviews import make_rows
from server import asked, serving

TEXTS = [row["review"] for row in make_rows(120, seed=7)]


def shares_of(answer):
    return [list(prediction["probabilities"].values()) for prediction in answer["predictions"]]


def ranks_of(answer):
    return [prediction["rank"] for prediction in answer["predictions"]]


def test_texts(server, stars):
    model = load_model(stars)
    answer = server.predict(model="stars", texts=TEXTS[:50], set=0.8)
    assert ranks_of(answer) == model.predict(TEXTS[:50]).tolist()
    np.testing.assert_allclose(shares_of(answer), model.predict_proba(TEXTS[:50]), atol=1e-6)
    members = model[-1].predict_set(model[:-1].transform(TEXTS[:50]), 0.8)
    for prediction, own in zip(answer["predictions"], members, strict=True):
        assert list(prediction["probabilities"]) == ["1", "2", "3", "4", "5"]
        assert prediction["set"] == np.arange(1, 6)[own].tolist()
    assert len(set(ranks_of(answer))) > 2


@pytest.mark.parametrize("name", ["stars", "grades", "risk", "numbers", "bent"])
def test_rows(server, request, name):
    model = load_model(request.getfixturevalue(name))
    if name == "numbers":
        rows = [{"1": 3.5, "4": 2}, {"2": 4, "99": 1}, {}]
    elif name in ("risk", "bent"):
        rows = [{"age": 71, "smoker": "yes", "town": "Ulm"}, {"age": None, "smoker": "unheard of"}, {"age": "24.5", "smoker": ""}]
    else:
        rows = [{**row, "review": row["review"]} for row in make_rows(20, seed=9)]
    answer = server.predict(model=name, rows=rows)
    assert ranks_of(answer) == predict_rows(model, rows).tolist()
    np.testing.assert_allclose(shares_of(answer), predict_rows(model, rows, method="predict_proba"), atol=1e-6)
    assert answer["model"] == name
    assert server.predict(model=name, row=rows[0])["predictions"] == answer["predictions"][:1]
    assert server.predict(model=name, rows=[])["predictions"] == []


def test_one_text_is_the_first_of_many(server):
    one = server.predict(model="stars", text=TEXTS[0], set=0.9, explain=True)
    assert one["predictions"] == server.predict(model="stars", texts=TEXTS[:2], set=0.9, explain=True)["predictions"][:1]


def test_reasons_add_up(server, stars):
    model = load_model(stars)
    text = "the great phone was awful and broken"
    (prediction,) = server.predict(model="stars", text=text, explain=True)["predictions"]
    why = prediction["explanation"]
    expected = model[-1].explain(model[:-1].transform([text]))[0].boundaries
    for told, boundary in zip(why["boundaries"], expected, strict=True):
        assert (told["lower"], told["upper"]) == (boundary.lower, boundary.upper)
        assert told["score"] == pytest.approx(boundary.score, abs=1e-4)
        parts = [told["bias"], told["rest"], *(value for _, value in told["up"] + told["down"])]
        assert sum(parts) == pytest.approx(told["score"], abs=0.002)
    scores = [abs(boundary.score) for boundary in expected]
    beside = [place for place in (prediction["rank"] - 2, prediction["rank"] - 1) if 0 <= place < 4]
    assert why["decided_at"] == min(beside, key=scores.__getitem__)
    assert why["above"] == sum(boundary.score > 0 for boundary in expected)
    assert "".join(piece for piece, _ in why["pieces"]) == text
    pulls = dict(why["pieces"])
    assert pulls["great"] > 0 > pulls["awful"]
    assert why["words"] == {"known": 7, "all": 7, "are": "words"}


def test_reasons_of_columns(server):
    (prediction,) = server.predict(model="risk", row={"age": 71, "smoker": "yes"}, explain=True)["predictions"]
    why = prediction["explanation"]
    assert dict(why["boundaries"][-1]["up"])["age"] > 0
    assert "pieces" not in why


@pytest.mark.parametrize("text", ["", "  ", "unheardof wörds", "\u0000\u2028", "great " * 800])
def test_any_text_has_reasons(server, text):
    (prediction,) = server.predict(model="stars", text=text, set=0.5, explain=True)["predictions"]
    assert prediction["rank"] in prediction["set"]
    assert "".join(piece for piece, _ in prediction["explanation"]["pieces"]) == text


def test_requests_that_arrive_together_get_their_own_answers(server, stars):
    """From many connections at once, to several models, with bad requests in between."""
    expected = load_model(stars).predict(TEXTS).tolist()
    before = server.metrics()
    barrier = threading.Barrier(8)

    def client(start):
        connection = server.connect()
        barrier.wait()
        found = []
        for number in range(start, len(TEXTS), 8):
            status, _, answer = asked(connection, "POST", "/predict", {"model": "stars", "text": TEXTS[number]})
            assert status == 200
            found.append((number, ranks_of(answer)[0]))
            assert asked(connection, "POST", "/predict", {"model": "stars", "text": 5})[0] == 400
            status, _, answer = asked(connection, "POST", "/predict", {"model": "risk", "row": {"age": "old", "smoker": ""}})
            assert (status, answer) == (400, {"error": "row: Column 'age' must hold numbers, as it did in training. Got 'old'."})
        connection.close()
        return found

    with ThreadPoolExecutor(8) as pool:
        found = dict(pair for pairs in pool.map(client, range(8)) for pair in pairs)
    assert [found[number] for number in range(len(TEXTS))] == expected
    after = server.metrics()
    rows, batches = (after[f"rankplane_batch_rows_{part}"] - before[f"rankplane_batch_rows_{part}"] for part in ("sum", "count"))
    assert rows >= len(TEXTS)
    assert batches <= rows
    assert after['rankplane_rows_total{model="stars"}'] - before['rankplane_rows_total{model="stars"}'] == len(TEXTS)


def test_models_are_described_without_naming_files(server, folder):
    status, headers, found = server.ask("GET", "/models")
    assert status == 200
    assert headers["Cache-Control"] == "no-store"
    models = {model["name"]: model for model in found["models"]}
    assert list(models) == ["stars", "grades", "risk", "numbers", "bent"]
    assert models["stars"]["ranks"] == [1, 2, 3, 4, 5]
    assert models["stars"]["trained"]["rows"] == 160
    assert models["grades"]["columns"] == [{"name": "title", "type": "text"}, {"name": "review", "type": "text"}]
    assert models["risk"]["columns"] == [
        {"name": "age", "type": "number"},
        {"name": "smoker", "type": "category", "categories": ["no", "yes"]},
    ]
    assert [model["kind"] for model in models.values()] == ["text", "text", "table", "numbers", "table"]
    assert [model["explains"] for model in models.values()] == [True, True, True, False, False]
    assert found["limits"] == {"rows": 50, "characters": 5000, "bytes": 200_000}
    assert str(folder) not in str(found)
    assert ".csv" not in str(found)


def test_a_single_model_needs_no_name(stars):
    with serving(stars) as server:
        assert server.predict(text="great")["model"] == "stars"
        assert server.refusal(400, {"text": "great", "model": "moon"}) == 'model must be one of stars. Got "moon".'
