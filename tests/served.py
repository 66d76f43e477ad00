"""Models of every kind, and a server of all of them, for the tests of the server."""

import random

import pytest

from rankplane.cli import main
from reviews import make_rows, write_csv
from server import serving


def trained(folder, name, data, *options):
    path = folder / f"{name}.rankplane"
    assert main(["train", str(data), "--C", "1", *options, "-o", str(path)]) == 0
    return path


@pytest.fixture(scope="session")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="session")
def stars(folder):
    """Takes a text."""
    data = write_csv(folder / "reviews.csv", make_rows(200))
    return trained(folder, "stars", data, "--target", "stars", "--text", "review")


@pytest.fixture(scope="session")
def grades(folder):
    """Takes a title and a review; ranks are the other way round, so that nobody takes it for the other model."""
    rows = [row | {"stars": 6 - row["stars"]} for row in make_rows(200, seed=3)]
    data = write_csv(folder / "grades.csv", rows)
    return trained(folder, "grades", data, "--target", "stars", "--text", "title", "--text", "review")


@pytest.fixture(scope="session")
def risk(folder):
    """Takes columns."""
    rng = random.Random(0)
    rows = []
    for number in range(200):
        age = 20 + number % 60
        rows.append({"age": age, "smoker": rng.choice(["yes", "no", ""]), "risk": ["low", "medium", "high"][(age - 20) // 20]})
    data = write_csv(folder / "patients.csv", rows)
    return trained(folder, "risk", data, "--target", "risk", "--ranks", "low,medium,high", "--kernel", "linear")


@pytest.fixture(scope="session")
def numbers(folder):
    """Takes numbered columns."""
    data = folder / "numbers.svmlight"
    data.write_text("".join(f"{n % 3} {n % 3 + 1}:{1 + n % 5} 4:{n % 7}\n" for n in range(90)))
    return trained(folder, "numbers", data)


@pytest.fixture(scope="session")
def bent(folder, risk):
    """Takes columns, and has a kernel."""
    options = ["--target", "risk", "--ranks", "low,medium,high", "--kernel", "rbf", "--gamma", "1"]
    return trained(folder, "bent", folder / "patients.csv", *options)


@pytest.fixture(scope="session")
def server(stars, grades, risk, numbers, bent):
    with serving(stars, grades, risk, numbers, bent, "--max-characters", "5000", "--max-rows", "50", "--max-body", "0.2") as server:
        yield server
