"""Fits from files that are larger than memory: their passes, their limits, and what interruptions leave."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from command import COMMAND, complaint
from rankplane import NPSVOR, CSearchCV, TextVectorizer, load_model, read_metadata
from rankplane.cli import main
from rankplane.distributed.text import Counts, Merge
from rankplane.inputs.delimited import PLAIN
from rankplane.inputs.reading import InputError
from rankplane.out_of_core import fit, memory, passes, training, work
from rankplane.out_of_core.counting import ByFiles, StoredCounts, store
from rankplane.out_of_core.folder import Folder
from rankplane.progress import ProgressBar
from rankplane.text.parts import count, read
from reviews import make_rows, make_words, write_csv

MORE = 64 << 20  # bytes of memory beyond what the process itself takes
MANY = 40_000  # rows
TRAIN = ["--text", "review", "--target", "stars", "--C", "1", "--jobs", "1"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rows = make_rows(1500)
    write_csv(folder / "whole.csv", rows)
    write_csv(folder / "a.csv", rows[:700])
    write_csv(folder / "b.csv", rows[700:])
    write_csv(folder / "test.csv", make_rows(200, seed=8))
    return folder


@pytest.fixture(autouse=True)
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)


def small():
    """A limit that leaves little, so that there are several chunks and blocks."""
    return memory.used() + memory.READING + memory.LEAST + (24 << 20)


@pytest.fixture
def tiny(monkeypatch):
    """Chunks and blocks of a few hundred rows."""
    monkeypatch.setattr(memory, "PER_TEXT", 1 << 10)
    monkeypatch.setattr(memory, "PER_ENTRY", 1 << 10)
    monkeypatch.setattr(memory, "LEAST_TOGETHER", 16)
    monkeypatch.setattr(passes, "BATCH", 128)


# --- the two passes ------------------------------------------------------------------------------------------------------------


def texts_of(rows):
    return [row["review"] for row in rows]


@pytest.mark.parametrize("options", [{}, {"ngram_range": (1, 3), "min_df": 4}, {"max_features": 50}, {"analyzer": "char"}], ids=str)
def test_vocabulary_of_chunks_is_that_of_all_texts(options, tmp_path):
    texts = texts_of(make_rows(400))
    vectorizer = TextVectorizer(**options)
    expected = vectorizer.fit(texts)
    for number, settings in enumerate(vectorizer._settings()):
        stored = []
        for first in range(0, len(texts), 90):
            corpus = read(texts[first : first + 90], vectorizer._settings(), 1, ProgressBar(False))[number]
            store(tmp_path / f"{first}.npz", Counts.of(count(corpus, settings), settings))
            stored.append(StoredCounts(tmp_path / f"{first}.npz"))
        terms, levels = Merge(ByFiles(tmp_path, 7), settings.min_df).run(stored, max(part.n_levels for part in stored))
        of_all = expected._parts[number].vocabulary.__getstate__()
        assert b"".join(terms) == of_all[0]
        for (keys, n_documents, _), (own_keys, own_documents, _) in zip(levels, of_all[2], strict=True):
            np.testing.assert_array_equal(keys, own_keys)
            np.testing.assert_array_equal(n_documents, own_documents)


def test_a_limited_vocabulary_is_that_of_a_larger_min_df(tmp_path):
    texts = texts_of(make_rows(300))
    settings = TextVectorizer()._settings()[0]
    stored = []
    for first in (0, 100, 200):
        corpus = read(texts[first : first + 100], [settings], 1, ProgressBar(False))[0]
        store(tmp_path / f"{first}.npz", Counts.of(count(corpus, settings), settings))
        stored.append(StoredCounts(tmp_path / f"{first}.npz"))
    merge = Merge(ByFiles(tmp_path, 3), 2, most=60)
    terms, levels = merge.run(stored, 2)
    assert merge.least > 2
    expected = TextVectorizer(min_df=merge.least, analyzer=settings.analyzer).fit(texts)._parts[0].vocabulary.__getstate__()
    assert b"".join(terms) == expected[0]
    assert sum(len(level[1]) for level in levels) <= 60
    np.testing.assert_array_equal(levels[1][0], expected[2][1][0])


@pytest.mark.usefixtures("tiny")
def test_a_model_is_as_good_as_that_of_memory(folder, tmp_path):
    found = fit(None, ["a.csv", "b.csv"], text="review", target="stars", memory=small(), cache=tmp_path / "c")
    assert len([name for name in os.listdir(tmp_path / "c") if name.startswith("block-")]) > 2
    texts, stars = zip(*((row["review"], row["stars"]) for row in make_rows(600, seed=9)), strict=True)
    expected = TextVectorizer().fit(texts_of(make_rows(1500)))
    assert found[0].get_feature_names_out().tolist() == expected.get_feature_names_out().tolist()
    np.testing.assert_allclose(found[0].idf_, expected.idf_)
    alone = CSearchCV(NPSVOR(probability=True, decision="mae", column_weight="ranks"))
    alone.fit(expected.transform(texts_of(make_rows(1500))), [row["stars"] for row in make_rows(1500)])
    error, of_alone = (np.abs(model.predict(expected.transform(texts)) - stars).mean() for model in (found[-1], alone))
    assert abs(error - of_alone) < 0.05
    assert found.predict_proba(texts).shape == (600, 5)


def test_svmlight_files_and_named_ranks(tmp_path):
    rng = random.Random(0)
    path = tmp_path / "rows.svm"
    lines = []
    for number in range(500):
        rank = rng.choice(["low", "mid", "top"])
        column = 40 if number == 499 else 3  # a column that only the last row has
        lines.append(f"{rank} 1:{('low', 'mid', 'top').index(rank) + rng.gauss(0, 0.3):.3f} {column}:1\n")
    path.write_text("".join(lines))
    found = fit(NPSVOR(C=10), str(path), ranks=["low", "mid", "top"])
    assert found.n_features_in_ == 40
    X = np.zeros((2, 40))
    X[1, 0] = 2
    assert found.predict(X).tolist() == ["low", "top"]
    assert not [name for name in os.listdir() if name.startswith("rankplane-")]


# --- the command line ------------------------------------------------------------------------------------------------------------


def test_train_in_a_given_memory(folder, tmp_path, capsys):
    output = str(tmp_path / "m")
    assert main(["train", "whole.csv", *TRAIN, "--memory", "1G", "-o", output, "--report", str(tmp_path / "r.html")]) == 0
    said = capsys.readouterr().out
    assert "Training from disk in at most 1 GB, with rows in" in said
    assert "rows held out of whole.csv" in said
    assert sorted(os.listdir(tmp_path)) == ["m", "r.html"]
    metadata = read_metadata(output)
    assert main(["train", "whole.csv", *TRAIN, "-o", str(tmp_path / "n"), "--json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert metadata["fingerprint"] == alone["fingerprint"]
    assert [record["what"] for record in metadata["choice"]] == [record["what"] for record in alone["choice"]]
    assert metadata["data"]["rows"] == 1500
    assert metadata["data"]["trained_on"] + metadata["metrics"]["rows"] == 1500
    assert abs(metadata["metrics"]["model"]["mae"] - alone["metrics"]["model"]["mae"]) < 0.12
    assert main(["predict", output, "test.csv", "-o", str(tmp_path / "p.csv")]) == 0


def test_a_sample_is_drawn_from_all_rows(tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "BATCH", 64)
    rows = [row | {"stars": 1 + number % 4} for number, row in enumerate(make_rows(800))]
    write_csv(tmp_path / "rare.csv", [*rows, rows[0] | {"review": "the only one", "stars": 5}])
    options = {"target": "stars", "text": ["review"], "group": None, "ranks": None}
    source = passes.Source.of([str(tmp_path / "rare.csv")], PLAIN, 0, **options)
    (sample, n_rows), (again, _) = (source.sample(6000, 0.2, None) for _ in range(2))
    assert n_rows == 801
    assert 3000 < sample.features.n_bytes < 7000
    assert list(sample.features) == list(again.features)
    assert set(sample.labels.tolist()) - {5} == {1, 2, 3, 4}
    places = [texts_of(rows).index(text) for text in sample.features if text != "the only one"]
    assert min(places) < 200
    assert max(places) > 600
    keys = np.concatenate(
        [chunk.keys[np.isin(list(chunk.features), list(sample.features))] for chunk in source.chunks(10**6, None)]
    )
    assert passes.fraction(keys).min() >= 0.2


def test_test_files_and_groups(tmp_path):
    options = ["--test", "test.csv", "--group", "title", "--memory", "1G", "--class-weight", "balanced"]
    assert main(["train", "a.csv", "b.csv", *TRAIN, *options, "-o", str(tmp_path / "m")]) == 0
    metadata = read_metadata(tmp_path / "m")
    assert metadata["metrics"]["rows"] == 200
    assert metadata["data"]["trained_on"] == 1500


def test_files_that_will_not_fit_are_noticed(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(training, "size_of", lambda files: 10**15)
    assert main(["train", "whole.csv", *TRAIN, "-o", str(tmp_path / "m")]) == 0
    said = capsys.readouterr().out
    assert "To train on whole.csv in memory would take about" in said
    assert "Training from disk in at most" in said
    assert "Use --memory for another limit." in said


REFUSED = {
    "words": (["--memory", "lots"], "--memory must be a size such as 500M or 2G. Got lots."),
    "too little": (["--memory", "10M"], "--memory must be at least"),
    "kernel": (["--memory", "1G", "--kernel", "rbf"], "--memory is for files that are read twice: --kernel rbf needs all rows"),
    "no empty folder": (["--cache", "."], "has files of others in it: --cache must name an empty folder or a new one."),
    "a file": (["--cache", "a.csv"], "a.csv is a file: --cache must name a folder."),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case, tmp_path, capsys):
    options, message = REFUSED[case]
    before = sorted(os.listdir())
    assert message in complaint(capsys, ["train", "whole.csv", *TRAIN, *options, "-o", str(tmp_path / "m")])
    assert sorted(os.listdir()) == before
    assert os.listdir(tmp_path) == []


def test_tables_and_bad_ranks_are_refused(tmp_path, capsys):
    table = ["train", "whole.csv", "--target", "stars", "--memory", "1G", "-o", str(tmp_path / "m")]
    assert "must fit into memory: name columns of texts by --text" in complaint(capsys, table)
    write_csv(tmp_path / "bad.csv", [*make_rows(3), {"id": 1, "title": "x", "review": "y", "stars": "many"}])
    bad = ["train", str(tmp_path / "bad.csv"), *TRAIN, "--memory", "1G", "-o", str(tmp_path / "m")]
    assert 'bad.csv line 5: "many" in column "stars" is not a number' in complaint(capsys, bad)
    assert os.listdir(tmp_path) == ["bad.csv"]


def test_a_full_disk_is_noticed_before(tmp_path, capsys, monkeypatch):
    import shutil

    monkeypatch.setattr(shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1, 1, 1000))
    said = complaint(capsys, ["train", "whole.csv", *TRAIN, "--memory", "1G", "-o", str(tmp_path / "m")])
    assert "of disk space, but its disk has 1 kB left: name a folder on another disk by --cache." in said
    assert os.listdir(tmp_path) == []


def test_a_folder_in_use_is_refused(tmp_path):
    with Folder(tmp_path / "c", is_kept=True) as folder:
        folder.open("a")
        with pytest.raises(InputError, match="in use by another process"):
            Folder(tmp_path / "c", is_kept=True).open("a")


# --- interruptions ---------------------------------------------------------------------------------------------------------------


class StoppedError(Exception):
    """As Ctrl-C, wherever it comes."""


def stop_at(monkeypatch, module, name, n_calls):
    """Let a function fail at a call."""
    original, calls = getattr(module, name), []

    def counted(*arguments, **options):
        calls.append(1)
        if len(calls) == n_calls:
            raise StoppedError
        return original(*arguments, **options)

    monkeypatch.setattr(module, name, counted)
    return calls


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("place", ["count", "part_of", "write_block", "save"])
def test_a_fit_goes_on_where_it_was(place, tmp_path, monkeypatch):
    limit, search = small(), CSearchCV(NPSVOR(probability=True), Cs=[0.01, 0.1, 1])
    options = {"text": "review", "target": "stars", "memory": limit, "cache": tmp_path / "c"}
    module = work if place == "save" else passes
    with monkeypatch.context() as patch:
        calls = stop_at(patch, module, place, 1 if place == "part_of" else 3)
        with pytest.raises(StoppedError):
            fit(search, "whole.csv", **options)
    heard = []
    n_before, original = len(calls), passes.count
    counted = []
    monkeypatch.setattr(passes, "count", lambda *arguments: counted.append(1) or original(*arguments))
    found = fit(search, "whole.csv", on_round=heard.append, **options)
    whole = fit(search, "whole.csv", **(options | {"cache": tmp_path / "d"}))
    assert abs(found[-1].best_score_ - whole[-1].best_score_) < 0.05
    assert found[0].get_feature_names_out().tolist() == whole[0].get_feature_names_out().tolist()
    if place == "save":
        assert heard[0].number == 3  # two rounds were kept
        assert [one.number for one in found[-1].rounds_] == list(range(1, len(found[-1].rounds_) + 1))
    if place in ("write_block", "save"):
        n_of_whole = len(counted)
        assert n_before == 3
        fit(search, "whole.csv", **options)
        assert len(counted) == n_of_whole  # nothing was counted again


def test_another_model_starts_anew(tmp_path):
    options = {"text": "review", "target": "stars", "memory": "1G", "cache": tmp_path / "c"}
    first = fit(NPSVOR(C=0.01), "a.csv", **options)
    second = fit(NPSVOR(C=1.0), "a.csv", **options)
    assert np.abs(second[-1].coef_).max() > 2 * np.abs(first[-1].coef_).max()


def test_the_same_command_goes_on_after_ctrl_c(tmp_path, answers_to_ctrl_c):
    rows = make_rows(15_000)
    path = write_csv(tmp_path / "many.csv", rows)
    command = [*COMMAND, "train", path, *TRAIN, "--memory", "1G", "-o", str(tmp_path / "m")]
    child = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until = time.monotonic() + 60
    while not (tmp_path / "m.blocks").exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGINT)
    said = child.communicate(timeout=60)[1]
    assert child.returncode == 130
    assert said == "rankplane: stopped\n"
    assert (tmp_path / "m.blocks").is_dir()
    assert subprocess.run(command, capture_output=True, check=False).returncode == 0
    assert sorted(os.listdir(tmp_path)) == ["m", "many.csv"]
    assert load_model(tmp_path / "m").classes_.tolist() == [1, 2, 3, 4, 5]


# --- a real limit ----------------------------------------------------------------------------------------------------------------

LIMITED = """
import resource, sys
from rankplane import NPSVOR, TextVectorizer
from rankplane.out_of_core import fit
from rankplane.out_of_core.memory import used
from rankplane.inputs.reading import read_all

def data():
    return next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith("VmData"))

path, small, how, more = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
options = {"text": "review", "target": "stars"}
fit(NPSVOR(C=0.1), small, memory="2G", **options)  # which imports whatever it needs
limit = used() + more
resource.setrlimit(resource.RLIMIT_DATA, (data() + more, data() + more))
if how == "disk":
    model = fit(NPSVOR(C=0.1), path, memory=limit, **options)
    print(model[-1].n_features_in_, len(model[-1].rounds_), model.predict(["awful broken", "great superb"]).tolist())
else:
    try:
        table = read_all(path)
        NPSVOR(C=0.1).fit(TextVectorizer().fit_transform(table.columns["review"]), [int(x) for x in table.columns["stars"]])
    except MemoryError:
        print("no memory")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="limits of data are those of Linux")
def test_files_that_memory_does_not_hold(tmp_path):
    """With a limit to what the process may take beyond what it is without data."""
    rng = random.Random(0)
    words = [f"w{number}" for number in range(20_000)]
    path, small = tmp_path / "big.jsonl", tmp_path / "small.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for _ in range(MANY):
            stars = rng.randint(1, 5)
            text = " ".join([*make_words(rng, stars, 4), *rng.choices(words, k=100)])
            file.write(json.dumps({"review": text, "stars": stars}) + "\n")
    with open(path, encoding="utf-8") as file, open(small, "w", encoding="utf-8") as head:
        head.writelines(line for line, _ in zip(file, range(200), strict=False))
    environment = os.environ | {"ARROW_DEFAULT_MEMORY_POOL": "system", "OMP_NUM_THREADS": "1"}
    said = {}
    for how in ("disk", "memory"):
        command = [sys.executable, "-c", LIMITED, str(path), str(small), how, str(MORE)]
        said[how] = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=tmp_path, check=True).stdout
    assert said["memory"] == "no memory\n"
    n_columns, _, answers = said["disk"].split(" ", 2)
    assert int(n_columns) > 4000
    first, second = json.loads(answers)
    assert first < second
