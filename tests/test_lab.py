"""What benchmarks and experiments share, and that every one of them starts: on made data, and on the lines that are kept."""

import ast
import csv
import importlib
import json
import re
import subprocess
import sys
from types import ModuleType

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks import __main__ as bench
from benchmarks import common, docs
from benchmarks.fit import run as fit_run
from benchmarks.scaling import end_to_end, sizes, threads
from benchmarks.scaling import vectorize as scaling
from lab import ROOT, data, results
from lab.competitors import liblinear, logistic
from lab.made_texts import make_texts, shuffled
from lab.measures import confusion, macro_mae, measures
from lab.memory import run_measured
from lab.predictions import decoded
from lab.tables import number, table
from lab.timing import OutOfTimeError, take_turns, within

SET = "synthetic:300x400x4x12"
ENTRY_POINTS = [
    ".".join(path.relative_to(ROOT).with_suffix("").parts)
    for path in sorted([*(ROOT / "benchmarks").rglob("*.py"), *(ROOT / "experiments").glob("*.py")])
    if "def main(" in path.read_text(encoding="utf-8")
]


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    """Nothing is left in the user's cache or among the results, and nothing there decides a test."""
    monkeypatch.setenv("RANKPLANE_BENCH_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def own_results(tmp_path, monkeypatch):
    monkeypatch.setattr(common, "RESULTS", tmp_path / "results")
    return tmp_path / "results"


def imported(folder):
    """The top-level packages that the files of a folder import, wherever in a file."""
    for path in (ROOT / folder).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                yield node.module.partition(".")[0]
            elif isinstance(node, ast.Import):
                yield from (name.name.partition(".")[0] for name in node.names)


@pytest.mark.parametrize(
    ("folder", "others"), [("lab", "benchmarks experiments"), ("benchmarks", "experiments"), ("experiments", "benchmarks")]
)
def test_benchmarks_and_experiments_share_lab_and_nothing_else(folder, others):
    assert not set(imported(folder)) & set(others.split())
    assert "rankplane" in set(imported(folder))


@pytest.mark.parametrize("name", ENTRY_POINTS)
def test_every_entry_point_starts(name, capsys):
    pytest.importorskip("pyarrow", reason="texts need pyarrow, of the extra bench")
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(name).main(["--help"])
    assert ended.value.code == 0
    said = capsys.readouterr().out
    assert f"usage: {name.removesuffix('.__main__')} " in said


def test_made_texts_are_the_same_for_any_number():
    few, many = ([text for batch in make_texts(n, batch=20) for text in batch] for n in (30, 50))
    assert len(many) == len(set(many)) == 50
    assert many[:30] == few


def test_shuffled_texts_keep_their_sentences():
    text = "one two three. four five? six"
    shuffles = {shuffled(text, np.random.default_rng(seed)) for seed in range(20)}
    assert len(shuffles) > 5
    for found in shuffles:
        words = found.split()
        assert [set(words[:3]), set(words[3:5]), words[5]] == [{"one", "two", "three."}, {"four", "five?"}, "six"]
    assert shuffled("", np.random.default_rng(0)) == ""


def test_scaling_of_the_vectorizer_on_made_texts(own_results, capsys):
    pytest.importorskip("pyarrow", reason="texts need pyarrow, of the extra bench")
    arguments = "--sets made --documents 300 --threads 1 3 --rounds 1 --phases --rows 200 --row-sets made --row-rounds 1"
    scaling.main([*arguments.split(), "--all-threads", "2"])
    *by_threads, by_rows = common.read_lines("scaling")
    kinds = [(line["kind"], line["task"], line["x"], line["data"]["rows"]) for line in by_threads]
    assert kinds == [("threads", task, [1, 3], 300) for task in ("fit_transform", "transform")]
    for line in by_threads:
        for i, best in enumerate(line["best"]):
            assert best >= sum(seconds[i] for seconds in line["steps"].values()) - 1e-4 > 0  # steps are rounded
    assert (by_rows["kind"], by_rows["x"], by_rows["n_threads"]) == ("rows", [200], 2)
    assert by_rows["peak"][0] > by_rows["text_bytes"][0] > 10_000
    assert "writing rows" in capsys.readouterr().out


def test_scaling_of_fits_leaves_lines_that_the_page_reads(own_results, tmp_path, monkeypatch, capsys):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib, of the extra paper")
    threads.main(["--sets", SET, "--threads", "1", "2", "--rounds", "1", "--tasks", "fit", "--synthetic="])
    sizes.main(["--quick", "--rounds", "1", "--rows", "300", "600"])
    lines = common.read_lines("scaling")
    kinds = [
        "threads",
        "threads",
        "threads, one core busy",
        "threads, all cores busy",
        "columns of a row",
        "columns",
        "planes",
        "rows",
    ]
    assert [line["kind"] for line in lines] == kinds
    assert all(len(line["x"]) == len(line["best"]) == len(line["seconds"]) > 1 for line in lines)
    assert lines[-1]["peak"][1] > 0
    monkeypatch.setattr(docs, "RESULTS", own_results)
    docs.main(["--out", str(tmp_path)])
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    drawn = re.findall(r"\]\((figures/benchmarks/scaling-\w+\.svg)\)", page)
    assert len(drawn) == 4
    assert all((tmp_path / path).read_text(encoding="utf-8").startswith("<?xml") for path in drawn)
    assert "two threads, all cores busy, times faster than one" in page
    bench.main(["--tasks"])
    assert "two threads, one core busy" in capsys.readouterr().out


def test_times_of_other_answers_do_not_count():
    made = data.make_synthetic("300x400x4x12")
    runs = threads.Runs("fit", made)
    runs.errors[1] = 7.0
    with pytest.raises(SystemExit, match=r"fit, 2: test MAE \d\.\d+, not 7.000 as before"):
        runs.run(2, 2)


def test_columns_in_random_order_are_the_same_rows():
    X = data.make_synthetic("300x400x4x12").X
    mixed = threads.unsorted(X)
    assert not mixed.has_sorted_indices
    assert (mixed != X).nnz == 0


def test_the_benchmarks_page_is_what_its_lines_say(tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib, of the extra paper")
    docs.main(["--out", str(tmp_path)])
    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8") == (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    drawn, there = ({path.name for path in (folder / "figures" / "benchmarks").glob("*")} for folder in (tmp_path, ROOT / "docs"))
    assert drawn == there, "no figure without a page"


def test_the_papers_page_is_what_its_lines_say(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of the extra paper")
    from experiments import page
    from experiments.notebook import Notebook

    written = page.write(Notebook(), tmp_path).read_text(encoding="utf-8")
    assert written == (ROOT / "docs" / "reproduction.md").read_text(encoding="utf-8")
    drawn = {path.name for path in (tmp_path / "figures").iterdir()}
    there = {path.name for path in (ROOT / "docs" / "figures").iterdir()} - {"benchmarks"}
    assert drawn == there, "no figure without a page"


def test_a_page_without_results_is_not_written(tmp_path, own_results, monkeypatch, capsys):
    monkeypatch.setattr(docs, "RESULTS", own_results)
    docs.main(["--out", str(tmp_path / "docs")])
    assert "There are no results yet" in capsys.readouterr().err
    assert not (tmp_path / "docs").exists()


def test_fits_are_measured_and_leave_lines_that_the_page_reads(tmp_path, own_results, monkeypatch, capsys):
    fit_run.main(["--sets", SET, "--rounds", "1", "--only", "rankplane"])
    lines = common.read_lines("fit")
    assert {line["data"]["name"] for line in lines} == {SET}
    assert all({"run", "commit", "machine", "versions", "competitor", "best", "answer", "counts"} <= line.keys() for line in lines)
    assert all(line["counts"] for line in lines if line["model"] != "svr")
    monkeypatch.setattr(docs, "RESULTS", own_results)
    docs.main(["--out", str(tmp_path)])
    page = (tmp_path / "benchmarks.md").read_text(encoding="utf-8")
    assert f"### {SET}" in page
    assert "rankplane NPSVOR, 1 thread" in page


def test_lines_that_are_not_to_be_kept_are_not(own_results, capsys):
    fit_run.main(["--sets", SET, "--rounds", "1", "--only", "LinearSVR, tol=0.1", "--no-save"])
    assert "LinearSVR" in capsys.readouterr().out
    assert not own_results.exists()


def test_what_cannot_run_is_named_and_left_out(capsys):
    absent, there = ModuleType("absent"), ModuleType("there")
    absent.VARIANTS, absent.missing = {"Absent": {}}, lambda: "it is not installed"
    there.VARIANTS, there.missing = {"There, 1": {"value": 1}, "There, 2": {"value": 2}}, lambda: None
    there.run = lambda value, limit: (value, limit)
    found = common.competitors([absent, there], only="2", limits={there: 9.0})
    assert {name: run() for name, run in found.items()} == {"There, 2": (2, 9.0)}
    assert "Absent: left out, it is not installed." in capsys.readouterr().err


def test_a_commit_is_marked_when_sources_differ(tmp_path, monkeypatch):
    def git(*words):
        who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    monkeypatch.setattr(results, "ROOT", tmp_path)
    assert results.commit("benchmarks") == "unknown"
    for name in ("src", "lab", "benchmarks/results", "experiments"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "kept").write_text("1")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    assert re.fullmatch("[0-9a-f]{12}", results.commit("benchmarks"))
    for name in ("benchmarks/results", "experiments"):
        (tmp_path / name / "kept").write_text("2")
    assert re.fullmatch("[0-9a-f]{12}", results.commit("benchmarks")), "results and other folders do not count"
    assert results.commit("experiments").endswith("+changes")
    (tmp_path / "lab" / "kept").write_text("2")
    assert results.commit("benchmarks").endswith("+changes")


def test_lines_come_back_as_they_were_written(tmp_path):
    path = tmp_path / "new" / "made.jsonl"
    assert results.read_lines(path) == []
    lines = [{"name": "评论", "best": 0.1}, {"name": "b", "seconds": [1, 2]}]
    for line in lines:
        results.append_line(path, line)
    assert results.read_lines(path) == lines
    assert len(path.read_text(encoding="utf-8").splitlines()) == 2


def test_turns_end_with_the_budget_but_everyone_has_one():
    calls = []

    def run(name, seconds):
        calls.append(name)
        return seconds

    runs = {"slow": lambda: run("slow", 7.0), "fast": lambda: run("fast", 1.0)}
    assert take_turns(runs, 3, 5.0, "made") == {"slow": [7.0], "fast": [1.0, 1.0, 1.0]}
    assert calls == ["slow", "fast", "fast", "fast"]


def test_work_is_given_up_after_its_processor_seconds():
    def endless():
        while True:
            sum(range(1000))

    assert within(5.0, lambda: 3) == 3
    with pytest.raises(OutOfTimeError):
        within(0.05, endless)


def test_measures_of_ranks():
    truth, answers = np.array([0, 0, 0, 2]), np.array([0, 0, 1, 0])
    assert measures(answers, truth) == {"accuracy": 0.5, "mae": 0.75, "mse": 1.25}
    assert macro_mae(answers, truth) == pytest.approx((1 / 3 + 2) / 2)
    assert confusion(answers, truth, 3).tolist() == [[2, 1, 0], [0, 0, 0], [1, 0, 0]]


def test_probabilities_are_decoded_for_each_measure():
    found = decoded(np.array([[0.4, 0.0, 0.25, 0.35]]))
    assert {name: ranks.tolist() for name, ranks in found.items()} == {"accuracy": [0], "mae": [2], "mse": [2]}


def test_tables_are_aligned_in_their_source():
    rows = table(("data", "seconds"), [("a", number(1.5)), ("long name", number(None))]).splitlines()
    assert rows == ["| data      | seconds |", "| --------- | ------: |", "| a         |   1.500 |", "| long name |         |"]


def test_a_part_of_a_set_keeps_its_test_rows():
    whole = data.load(SET, None)
    few = whole.head(100)
    assert (few.name, few.X.shape[0], len(few.y)) == (f"{SET}[:100]", 100, 100)
    assert few.X_test is whole.X_test
    assert few.prepared is not whole.prepared
    assert whole.describe() | {"name": few.name, "rows": 100, "entries": int(few.X.nnz)} == few.describe()
    assert json.loads(json.dumps(whole.describe()))["ranks"] == 4


def test_a_folder_of_data_that_is_not_there_is_named(tmp_path):
    assert data.data_folder(str(tmp_path)) == tmp_path
    with pytest.raises(SystemExit, match=r"^--data must be a folder\. Got 'nowhere'\.$"):
        data.data_folder("nowhere")


def test_a_rival_chooses_its_settings_without_the_test_rows():
    whole = data.load(SET, None)
    found = logistic.run(whole)
    shuffled = data.Data(whole.name, whole.X, whole.y, whole.X_test, whole.y_test[::-1].copy())
    again = logistic.run(shuffled)
    assert found.note == again.note
    for name in ("accuracy", "mae", "mse"):
        np.testing.assert_array_equal(found.ranks[name], again.ranks[name])
    assert found.measures(whole)["accuracy"] > 0.3


@pytest.mark.parametrize("setting", ["-s 3 -c 1", "-s 1 -c 0.5", "-s 13 -c 1 -p 0.1"])
@pytest.mark.parametrize("n_ranks", [2, 4])
def test_planes_of_liblinear_answer_as_its_own_program(setting, n_ranks):
    util = pytest.importorskip("liblinear.liblinearutil", reason="LIBLINEAR is of the extra bench")
    made = data.load(f"synthetic:300x400x{n_ranks}x12", None)
    model = liblinear.train(liblinear.problem_of(made), setting)
    theirs, _, _ = util.predict([], made.X_test.astype(np.float64), model, "-q")
    expected = np.clip(np.rint(theirs), 1, n_ranks).astype(int) - 1
    np.testing.assert_array_equal(liblinear.predict(model, made.X_test, n_ranks), expected)


def test_commands_are_measured_from_outside():
    done = run_measured([sys.executable, "-c", "x = bytes(50_000_000); print('é')"])
    assert (done.output, done.seconds > 0, done.processor_seconds > 0) == ("é\n", True, True)
    assert done.peak_bytes > 50_000_000
    with pytest.raises(subprocess.CalledProcessError):
        run_measured([sys.executable, "-c", "raise SystemExit(3)"])


def test_reviews_beyond_the_set_have_their_words_shuffled(tmp_path):
    texts = ["A good room. It was clean, and quiet!", "", "One"]
    pq.write_table(pa.table({"text": texts, "rating": [5, 3, 1]}), tmp_path / "set.parquet")
    end_to_end.make_csv(tmp_path / "set.parquet", 8, tmp_path / "made.csv")
    with open(tmp_path / "made.csv", newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["text", "rating"]
    assert [row[0] for row in rows[:3]] == texts
    assert [row[1] for row in rows] == ["5", "3", "1", "5", "3", "1", "5", "3"]
    assert sorted(rows[3][0].split()[:3]) == ["A", "good", "room."]
    assert rows[3][0] != rows[6][0] != texts[0]
