"""The machinery of the experiments, on made data: splits, result lines, statistics, and a page from few lines."""

import json
import re
import subprocess
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from sklearn import svm
from sklearn.metrics import accuracy_score, mean_absolute_error, mean_squared_error

from experiments import claims, copies, decision_regions, linear_models, mae_by_c, methods, published, summaries
from experiments.layout import against_paper, join, measure_table, power
from experiments.notebook import RESULTS, Job, Notebook, SkipError, carry_out
from experiments.one_against_one import PairwiseSVC
from experiments.sets import Collection, RatedSet, by_seed, split_rows, vectorised
from experiments.summaries import Sample, collect, difference, errors_of, tally
from lab.data import Data
from lab.significance import average_ranks, cliques, compare, critical_difference, iman_davenport

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    """Nothing is left in the user's cache, and nothing in it decides a test."""
    monkeypatch.setenv("RANKPLANE_BENCH_CACHE", str(tmp_path / "cache"))


def test_splits_keep_copies_together_and_shares():
    rng = np.random.default_rng(0)
    groups = rng.integers(0, 150, 600)
    ranks = np.arange(150)[groups] % 5
    for seed in range(3):
        train, test = split_rows(ranks, groups, seed)
        assert not set(groups[train]) & set(groups[test])
        assert sorted([*train, *test]) == list(range(600))
        assert 0.15 < len(test) / 600 < 0.25
        plain_train, plain_test = split_rows(ranks, None, seed)
        assert len(plain_test) == 120
        np.testing.assert_allclose(np.bincount(ranks[plain_test]) / 120, np.bincount(ranks) / 600, atol=0.02)
        assert sorted([*plain_train, *plain_test]) == list(range(600))


def test_columns_are_learnt_from_training_rows_only():
    texts = ["fine fine thing", "poor thing", "fine sort", "poor sort"] * 5 + ["unheard unheard"] * 4
    rated = RatedSet("made", texts, np.array([0, 1] * 12, dtype=np.int32), None)
    data = vectorised(rated, np.arange(20), np.arange(20, 24), "default")
    assert data.X_test.nnz == 0
    assert data.X.shape[0] == 20


def test_a_set_that_is_not_there_is_left_out_by_name(tmp_path, capsys):
    collection = Collection(tmp_path)
    assert collection.sets(("video", "largemovie")) == []
    said = capsys.readouterr().err
    assert "Video is left out: there is no video.parquet" in said
    collection.sets(("video",))
    assert "Video" not in capsys.readouterr().err, "named once"


def test_first_split_of_every_set_comes_first():
    collection = Collection(None, is_quick=True, n_splits=2)
    assert [seed for _, _, seed in by_seed(collection, ())] == [0, 1]


def test_results_are_computed_once(tmp_path):
    calls = []

    def work():
        calls.append(1)
        return {"mae": 0.5}

    jobs = [Job("made", {"set": "a", "seed": seed, "settings": {"tol": 0.1}}, work) for seed in range(3)]
    assert carry_out(Notebook(tmp_path), jobs) == (3, 3)
    assert carry_out(Notebook(tmp_path), jobs) == (0, 3)
    other = Job("made", {"set": "a", "seed": 0, "settings": {"tol": 0.01}}, work)
    assert carry_out(Notebook(tmp_path), [*jobs, other, other]) == (1, 5)
    assert len(calls) == 4
    lines = [json.loads(line) for line in (tmp_path / "made.jsonl").read_text().splitlines()]
    assert all({"commit", "seconds", "run", "machine"} <= line.keys() for line in lines)
    assert Notebook(tmp_path).lines("made", seed=0) == [lines[0], lines[3]]


def test_workers_find_the_same_and_the_clock_waits(tmp_path):
    order = tmp_path / "order"

    def work(key, is_clocked):
        with order.open("a") as file:
            file.write("clocked\n" if is_clocked else "other\n")
        if key["seed"] == 2:
            raise SkipError("no")
        return {"mae": key["seed"] + 0.5}

    jobs = []
    for name in ("timed", "a", "b"):
        for seed in range(3):
            key = {"set": name, "split": "plain", "seed": seed}
            jobs.append(Job("made", key, partial(work, key, name == "timed"), is_clocked=name == "timed"))
    assert carry_out(Notebook(tmp_path), [*jobs, *jobs], n_workers=2) == (6, 18)
    lines = Notebook(tmp_path).lines("made")
    assert {(line["set"], line["mae"]) for line in lines} == {(name, s + 0.5) for name in ("timed", "a", "b") for s in (0, 1)}
    assert order.read_text().split() == ["other"] * 6 + ["clocked"] * 3


def test_what_cannot_be_done_is_said_and_leaves_no_line(tmp_path, capsys):
    def work():
        raise SkipError("mord is not installed.")

    assert carry_out(Notebook(tmp_path), [Job("made", {"seed": seed}, work) for seed in range(2)]) == (0, 2)
    assert capsys.readouterr().err.count("mord is not installed") == 1
    assert not (tmp_path / "made.jsonl").exists()


def test_a_line_keeps_measures_and_confusions():
    rng = np.random.default_rng(0)
    truth, answers = rng.integers(0, 4, 200), rng.integers(0, 4, 200)
    nothing = np.empty((0, 1))
    found = methods.judged(Data("made", nothing, np.array([0]), nothing, truth), answers)
    assert list(found) == ["mae", "mse", "accuracy", "macro_mae", "confusion"]
    assert found["mae"] == round(mean_absolute_error(truth, answers), 5)
    assert found["mse"] == round(mean_squared_error(truth, answers), 5)
    assert found["accuracy"] == round(accuracy_score(truth, answers), 5)
    of_ranks = [mean_absolute_error(truth[truth == rank], answers[truth == rank]) for rank in range(4)]
    assert found["macro_mae"] == round(float(np.mean(of_ranks)), 5)
    # Every measure can be computed again from a line's confusions, by true and predicted rank.
    assert found["confusion"][1][3] == np.sum((truth == 1) & (answers == 3))
    assert np.trace(found["confusion"]) / 200 == found["accuracy"]


def test_one_against_one_is_what_scikit_learn_does():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    y = np.digitize(X[:, 0] + X[:, 1] ** 2 + 0.5 * rng.normal(size=300), [-0.2, 0.6, 1.5])
    theirs = svm.SVC(C=2.0, gamma=0.5, tol=1e-6, decision_function_shape="ovo").fit(X[:200], y[:200])
    ours = PairwiseSVC(C=2.0, kernel="rbf", gamma=0.5, tol=1e-5).fit(X[:200], y[:200])
    # Their planes are positive for the lower rank of a pair.
    np.testing.assert_allclose(ours.plane_scores(X[200:]), -theirs.decision_function(X[200:]), atol=1e-4)
    np.testing.assert_array_equal(ours.predict(X[200:]), theirs.predict(X[200:]))


def test_errors_of_copies_and_of_others_add_up():
    errors, has_copy = np.array([0, 0, 1, 2, 0]), np.array([True, True, False, False, False])
    found = linear_models.by_copies(errors, has_copy)
    assert found == {"copied_share": 0.4, "mae_of_copies": 0.0, "mae_of_others": 1.0}


def copied_lines():
    """Video with copies: errors of 0 on a fifth of the plain test rows and of 0.5 on the others, as on all rows by review."""
    head = {"set": "video", "method": "NPSVOR", "train_rows": 80, "test_rows": 20}
    plain = [head | {"split": "plain", "seed": seed, "mae": 0.4} for seed in range(2)]
    known = {"copied_share": 0.2, "mae_of_copies": 0.0, "mae_of_others": 0.5}
    return [*(line | known for line in plain), head | {"split": "review", "seed": 0, "mae": 0.5}]


def test_the_share_of_copies_that_would_meet_the_papers_figure(tmp_path):
    (tmp_path / "linear_models.jsonl").write_text("\n".join(map(json.dumps, copied_lines())), encoding="utf-8")
    page = copies.section(Notebook(tmp_path), tmp_path)
    row = next(line for line in page.splitlines() if line.startswith("| Video"))
    # 0.5 (1 - share) = 0.390
    assert re.split(r"\s*\|\s*", row)[1:-1] == ["Video", "0.400", "20 %", "0.000", "0.500", "0.500", "0.390", "22 %"]


def test_every_cell_stands_against_the_papers():
    samples = {(name, split): {"SVC": Sample({0: 0.872})} for name in ("video", "douban") for split in ("plain", "review")}
    table = against_paper(samples, list(samples), ("SVC", "NPSVOR"), published.LINEAR_MAE).splitlines()
    assert len(table) == 3, "one row: sets of the paper, splits like the paper's"
    assert re.split(r"\s*\|\s*", table[2])[1::2] == ["Video", "+100 %", ""]


def test_curves_are_means_of_the_splits_of_complete_places(tmp_path):
    line = {"set": "video", "split": "plain", "C": methods.CS, "test_rows": 1, "train_rows": 4}
    lines = [
        line | {"method": method, "seed": seed, "mae": [0.5 + seed + 0.01 * at for at in range(11)]}
        for method in linear_models.FOUR
        for seed in range(2)
    ]
    lines.append(lines[0] | {"split": "review"})
    (tmp_path / "mae_by_c.jsonl").write_text("\n".join(map(json.dumps, lines)), encoding="utf-8")
    found = mae_by_c.curves(Notebook(tmp_path))
    assert list(found) == [("video", "plain")]
    np.testing.assert_allclose(found["video", "plain"]["NPSVOR"], 1.0 + 0.01 * np.arange(11))


def test_intervals_widen_for_splits_that_share_rows():
    sample = Sample({0: 1.0, 1: 2.0, 2: 3.0}, test_per_train=0.25)
    assert sample.mean == 2.0
    # t(0.975, 2) = 4.303, variance 1, 1/3 + 1/4
    assert sample.half_width == pytest.approx(4.3027 * np.sqrt(7 / 12), rel=1e-4)
    assert Sample({0: 1.0}).half_width is None
    assert Sample({0: 1.0, 1: 2.0}).half_width is None
    mean, half = difference(Sample({0: 1.0, 1: 2.0, 2: 4.0, 5: 9.0}), Sample({0: 0.5, 1: 1.5, 2: 3.5}))
    assert mean == 0.5
    assert half == 0.0


def test_critical_differences_are_those_of_the_tables():
    """Demsar (2006): q = 2.569 for four methods, 2.850 for six."""
    assert critical_difference(4, 15) == pytest.approx(2.569 * np.sqrt(4 * 5 / (6 * 15)), abs=1e-3)
    assert critical_difference(6, 10) == pytest.approx(2.850 * np.sqrt(6 * 7 / (6 * 10)), abs=1e-3)


def test_ranks_compare_methods_on_the_splits_that_all_have():
    samples = {("a", "plain"): {"x": Sample({0: 1.0, 1: 5.0}), "y": Sample({0: 2.0})}, ("b", "plain"): {"x": Sample({0: 1.0})}}
    np.testing.assert_array_equal(errors_of(samples, samples, ["x", "y"]), [[1.0, 2.0]])


def test_friedman_as_iman_and_davenport_have_it():
    """Demsar (2006), section 3.2.2: average ranks 3.143, 2.000, 2.893 and 1.964 on 14 sets, F = 3.69, p = 0.0193."""
    ranks = np.array([3.143, 2.0, 2.893, 1.964])
    chi_square = 12 * 14 / (4 * 5) * (np.sum(ranks**2) - 4 * 25 / 4)
    assert chi_square == pytest.approx(9.28, abs=0.02)
    assert iman_davenport(chi_square, 14, 4) == pytest.approx(0.0193, abs=5e-4)
    assert iman_davenport(14 * 3, 14, 4) == 0.0, "the same order on every set"


def test_a_claim_is_as_sure_as_its_intervals():
    sure, unsure, against = (-1.0, 0.5), (-1.0, 2.0), (1.0, 0.5)
    assert claims.verdict(tally([sure, sure, unsure])) == "holds"
    assert claims.verdict(tally([unsure, unsure, (1.0, None)])) == "no significant difference"
    assert claims.verdict(tally([against, unsure, unsure])) == "does not hold"
    assert claims.verdict(tally([sure, sure, against])) == "holds on most sets"
    found = tally([sure, unsure, against])
    assert claims.verdict(found) == "mixed"
    assert (found.n_for, found.n_sure, found.n_against, found.n_all) == (2, 1, 1, 3)


def test_cliques_are_the_widest_runs():
    assert cliques([1.0, 1.5, 2.4, 4.0], 1.0) == [(0, 1), (1, 2)]
    assert cliques([1.0, 1.5, 1.9], 1.0) == [(0, 2)]
    assert cliques([1.0, 3.0], 1.0) == []


def test_average_ranks_share_ties():
    np.testing.assert_allclose(average_ranks(np.array([[1.0, 1.0, 2.0], [3.0, 1.0, 2.0]])), [2.25, 1.25, 2.5])


def test_the_papers_average_ranks_follow_from_its_figures():
    """A slip in the transcription would show: printed ranks differ from recomputed ones by the handling of ties only."""
    for table, printed in (
        (published.LINEAR_MAE, published.LINEAR_RANKS["mae"]),
        (published.LINEAR_MSE, published.LINEAR_RANKS["mse"]),
    ):
        assert len(table) == 15
        verdict = compare(summaries.table_of(table, list(printed)))
        np.testing.assert_allclose(verdict.ranks, list(printed.values()), atol=0.07)
        assert verdict.p_value < 1e-4
    for table, printed in (
        (published.SMALL_MAE, published.SMALL_RANKS["mae"]),
        (published.SMALL_MSE, published.SMALL_RANKS["mse"]),
    ):
        ranks = average_ranks(summaries.table_of(table, list(printed)))
        np.testing.assert_allclose(ranks, list(printed.values()), atol=0.25)


def test_the_toy_set_shows_what_the_paper_shows():
    line = decision_regions.run()
    old, new = line["odd"].values()
    assert old == [3, 1]
    assert new == [1, 3]
    assert line["differ_by_two"] > 0.05


def test_linear_models_on_generated_reviews(tmp_path):
    collection = Collection(None, is_quick=True, n_splits=2, only_sets=("generated",))
    notebook = Notebook(tmp_path)
    n_done, n_all = carry_out(notebook, linear_models.jobs(collection, notebook))
    assert n_done == n_all == 2 * len(linear_models.METHODS)
    samples = collect(notebook.lines("linear_models"), "mae")
    means = {method: sample.mean for method, sample in samples["generated", "plain"].items()}
    assert all(0.2 < mean < 0.8 for mean in means.values())
    page = linear_models.section(Notebook(tmp_path), tmp_path / "figures")
    assert f"{means['NPSVOR']:.3f}" in page.replace("**", "")


def test_best_cells_are_bold_and_the_papers_row_comes_first():
    samples = {("video", "plain"): {"SVC": Sample({0: 0.5}), "NPSVOR": Sample({0: 0.4, 1: 0.42, 2: 0.41})}}
    rows = measure_table(samples, list(samples), ("SVC", "NPSVOR"), published.LINEAR_MAE).splitlines()
    assert re.split(r"\s*\|\s*", rows[2])[1:5] == ["Video", "in the paper", "0.436", "**0.390**"]
    assert "**0.410** ±" in rows[3]


def test_words():
    assert join(["a", "b", "c"]) == "a, b and c"
    assert join(["a"]) == "a"
    assert join([]) == "none"
    assert power(0.125) == "2^-3"
    assert power(0.3) == "0.3"


def test_theory_names_files_that_exist():
    page = (ROOT / "docs" / "theory.md").read_text(encoding="utf-8")
    for name in set(re.findall(r"`((?:src|tests|docs|experiments)/[\w./*]+)`", page)):
        assert list(ROOT.glob(name)), name


def test_a_page_is_drawn_from_lines(tmp_path):
    pytest.importorskip("matplotlib", reason="figures need matplotlib, of the extra paper")
    from experiments import page

    collection = Collection(None, is_quick=True, n_splits=1, only_sets=("generated",))
    notebook = Notebook(tmp_path / "results")
    carry_out(notebook, [*linear_models.jobs(collection, notebook), *decision_regions.jobs(collection, notebook)])
    written = page.write(notebook, tmp_path)
    text = written.read_text(encoding="utf-8")
    drawn = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "figures").iterdir()}
    assert drawn == set(re.findall(r"\((figures/[\w-]+\.svg)\)", text)), "every figure is shown, and is there"
    assert drawn
    assert "## Confusion matrices" in text


def test_original_files_are_read_where_there_is_no_parquet(tmp_path):
    lines = [f"{1 + n % 5}\t{'好' if n % 5 > 2 else '坏'} 评论 {n}" for n in range(60)] + ["5\t好 评论"] * 7
    (tmp_path / "DoctorQuality.tsv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    pytest.importorskip("jieba", reason="Chinese words need jieba, of the extra paper")
    collection = Collection(tmp_path)
    assert collection.sets(("doctorquality",)) == ["doctorquality"]
    with pytest.warns(UserWarning, match="DoctorQuality.tsv holds 67 texts"):
        rated = collection.load("doctorquality")
    np.testing.assert_array_equal(np.bincount(rated.ranks), [12] * 5)  # balanced, as in the paper
    assert collection.key("doctorquality", "plain", 0)["fingerprint"] == collection.fingerprint("doctorquality")


def test_lines_name_commits_of_this_history():
    """A line of a commit that nobody has, or of changes that were never committed, cannot be checked by anyone."""

    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()

    try:
        if git("rev-parse", "--is-shallow-repository") != "false" or Path(git("rev-parse", "--show-toplevel")) != ROOT:
            pytest.skip("this copy has no whole history")
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this copy has no history")
    lines = [json.loads(line) for path in sorted(RESULTS.glob("*.jsonl")) for line in path.read_text().splitlines()]
    assert lines
    known = set(git("rev-list", "HEAD", "--abbrev-commit", "--abbrev=12").split())
    assert {line["commit"] for line in lines} <= known
