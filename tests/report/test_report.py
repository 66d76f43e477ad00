"""The page about a model: complete, self-contained, true to its rows, and at home in a real browser."""

import html
import html.parser
import json
import re
from dataclasses import replace

import numpy as np
import pytest

from browser import BROWSER, FAINT_TEXTS, opened_tab
from rankplane import datasets, metrics, modelfile
from rankplane.cli import demo, main
from rankplane.inputs.reading import read_all
from rankplane.inputs.schema import Rows, joined_fields, take
from rankplane.report import make_report, plots, verdict
from rankplane.report.findings import COVERAGES, Findings
from rankplane.training import measuring
from rankplane.training.model import TrainedModel
from rankplane.training.wording import HEADINGS, format_measure
from reviews import GOOD, make_rows, read_csv, write_csv

SCRIPT = "<script>alert(1)</script> "


class Checker(html.parser.HTMLParser):
    """Every opened element is closed, nothing points elsewhere, names are unique, and tables and pictures say what they are."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links, self.names, self.unnamed = [], [], [], [], []

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.seen.append(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "action", "srcset")]
        self.names += [given["id"]] if "id" in given else []
        wanted = {"th": ["scope"], "svg": ["role", "aria-label"]}.get(tag, [])
        self.unnamed += [(tag, name) for name in wanted if not given.get(name)]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def checked(path):
    """The text of a page that is whole."""
    text = path.read_text(encoding="utf-8")
    checker = Checker()
    checker.feed(text)
    assert checker.open == []
    assert checker.links == ["data:,"]
    assert "script" not in checker.seen
    assert checker.unnamed == []
    assert len(set(checker.names)) == len(checker.names)
    assert checker.seen.count("caption") == checker.seen.count("table") > 3
    assert {"header", "main", "footer"} <= set(checker.seen)
    assert not re.search(r"https?:|\bnan\b", text)
    return text


def words_of(text):
    """What is read, without tags and with plain spaces."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", text.split("</style>")[-1])).split())


def part(text, title):
    """One section of a page."""
    return next(found for found in re.findall(r"<section.*?</section>", text, re.DOTALL) if f">{title}</h2>" in found)


def headings(text):
    return re.findall(r"<h2[^>]*>(.*?)</h2>", text)


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """``page.html`` is of later rows, ``train.html`` of held-out ones."""
    folder = tmp_path_factory.mktemp("report")
    # Of training rows, 5 is the most frequent rank, but not the median.
    rows = make_rows(250) + [row for row in make_rows(200, seed=2) if row["stars"] == 5]
    later = [row for row in make_rows(500, seed=1) if row["stars"] != 1]
    rows[0]["review"] = SCRIPT + rows[0]["review"]
    later[0] |= {"title": "two\nlines", "review": SCRIPT + " ".join(GOOD * 2), "stars": 2}
    rows[1]["review"] = rows[1]["title"] = ""
    path = write_csv(folder / "reviews.csv", rows + rows[:30])
    arguments = ["--text", "title", "--text", "review", "--target", "stars", "-o", str(folder / "m.rankplane")]
    assert main(["train", path, *arguments, "--report", str(folder / "train.html")]) == 0
    later_path = write_csv(folder / "later.csv", later)
    assert main(["report", str(folder / "m.rankplane"), later_path, "-o", str(folder / "page.html")]) == 0
    return folder / "page.html"


@pytest.fixture(scope="module")
def patients(tmp_path_factory):
    """A page of a table with columns of numbers and of categories."""
    folder = tmp_path_factory.mktemp("patients")
    rng = np.random.default_rng(0)
    rows = []
    for _ in range(240):
        age, smokes = rng.uniform(20, 90), rng.random() < 0.4
        risk = int(np.digitize(age / 20 + smokes + rng.standard_normal() * 0.7, [2, 3, 4]))
        rows.append({"age": round(age, 1), "smoker": "yes" if smokes else "no", "risk": ["low", "some", "much", "very high"][risk]})
    path = write_csv(folder / "patients.csv", rows)
    arguments = ["--target", "risk", "--ranks", "low,some,much,very high", "--C", "1", "--kernel", "linear"]
    assert main(["train", path, *arguments, "-o", str(folder / "m"), "--report", str(folder / "page.html")]) == 0
    return folder / "page.html"


def test_the_page_is_complete(page):
    for path in (page, page.with_name("train.html")):
        text = checked(path)
        assert "default-src 'none'" in text
        assert "prefers-color-scheme: dark" in text
        assert 'name="viewport"' in text
        assert text.count("<svg") == 3
        assert headings(text) == [
            "Verdict",
            "Confusion matrix",
            "Rank by rank",
            "Rank sets",
            "Training data",
            "How often each rank occurs",
            "Reliability",
            "Choice of C",
            "Most important terms",
            "Largest errors",
            "Settings",
        ]
        assert "exact copies" in text
        assert "texts are empty" in text
        assert "<pre>rankplane train reviews.csv --text title --text review --target stars --model auto --preset auto" in text
    assert html.escape(SCRIPT) in re.sub("</?mark[^>]*>", "", part(page.read_text(encoding="utf-8"), "Largest errors"))


def test_the_page_leads_with_a_verdict(page):
    told = words_of(part(page.read_text(encoding="utf-8"), "Verdict"))
    later = read_csv(page.with_name("later.csv"))
    assert re.match(rf"Verdict Right for \d+ % of {len(later)} rows, and at most one rank off for \d+ %\. ", told)
    assert re.search(r"Always predicting 3, the median of training, is \d\.\d\d off: the error of the model is \d+ % lower\.", told)
    assert re.search(r"Finds rank \d in \d+ % of its \d+ cases, but rank \d in \d+ % of its \d+\.", told)
    assert "No row here has rank 1." in told
    assert re.search(r"Most often mistakes \d for \d \(\d+ rows, \d+ % of rank \d\)", told)
    assert told.count("less is better") == 3
    assert told.count("more is better") == 2


def constant_measures(labels, answer):
    return {name: measure(labels, np.full(len(labels), answer)) for name, (measure, _) in metrics.MEASURES.items()}


def test_baselines_are_of_the_rows_that_are_measured(page, capsys):
    later = np.array([int(row["stars"]) for row in read_csv(page.with_name("later.csv"))])
    model = page.with_name("m.rankplane")
    data = modelfile.read_metadata(model)["data"]
    assert sum(data["trained_ranks"].values()) == data["trained_on"] < sum(data["ranks"].values())
    trained = np.repeat(range(1, 6), list(data["trained_ranks"].values()))
    commonest, median = np.argmax(np.bincount(trained)), trained[len(trained) // 2]
    assert main(["evaluate", str(model), str(page.with_name("later.csv")), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["rows"] == len(later)
    assert told["majority"] == pytest.approx(constant_measures(later, commonest))
    assert told["median"] == pytest.approx(constant_measures(later, median))
    assert main(["evaluate", str(model), str(page.with_name("later.csv"))]) == 0
    assert "median" in capsys.readouterr().out
    # The page shows the same, and what was measured in training under that name only.
    text = page.read_text(encoding="utf-8")
    cards, about = words_of(part(text, "Verdict")), words_of(part(text, "Training data"))
    for name in HEADINGS:
        assert f"always {median}, the median: {format_measure(told['median'][name])}" in cards
        assert f"always {commonest}, the most frequent: {format_measure(told['majority'][name])}" in cards
    earlier = modelfile.read_metadata(model)["metrics"]
    figures = " ".join(format_measure(earlier["median"][name]) for name in HEADINGS)
    assert f"median {figures}" in about
    assert "When it was trained Measured when the model was trained, on" in about
    assert "other rows than those of this page" in about
    assert figures not in words_of(text.replace(part(text, "Training data"), ""))
    # Where both are the same rows, there is nothing to tell apart.
    assert "When it was trained" not in page.with_name("train.html").read_text(encoding="utf-8")


def test_baselines_of_older_files():
    order = np.array([1, 2, 3])
    assert measuring.trained_ranks({"data": {"ranks": {"1": 5, "2": 0, "3": 2}}}) == {"1": 5, "2": 0, "3": 2}
    assert measuring.constant_answers(order, {"1": 3, "2": 0, "3": 4}) == {"majority": 3, "median": 3}
    assert measuring.constant_answers(order, {"1": 3, "2": 1, "3": 2}) == {"majority": 1, "median": 2}
    assert measuring.constant_answers(order, {}) == {}
    answers = {"model": np.array([1, 3])}
    assert list(measuring.compared(np.array([1, 3]), answers, order, measuring.trained_ranks({}))) == ["rows", "model"]


@pytest.fixture(scope="module")
def noise(tmp_path_factory):
    """A model of columns that say nothing, and its page."""
    folder = tmp_path_factory.mktemp("noise")
    rng = np.random.default_rng(1)
    rows = [{"a": rng.standard_normal(), "b": rng.standard_normal(), "r": rng.integers(1, 5)} for _ in range(400)]
    path = write_csv(folder / "noise.csv", rows)
    arguments = ["--target", "r", "-o", str(folder / "m"), "--C", "1", "--kernel", "linear"]
    assert main(["train", path, *arguments, "--report", str(folder / "page.html")]) == 0
    return folder / "page.html"


def parts_of(page):
    """What make_report takes, for the rows of ``later.csv`` or of the training file."""
    model = TrainedModel.open(str(page.with_name("m" if page.with_name("m").exists() else "m.rankplane")))
    inputs = model.inputs
    path = str(page.with_name("later.csv" if page.with_name("later.csv").exists() else model.metadata["source"]))
    batch = read_all(path)
    labels, present = inputs.labels(batch, path)
    features = take(inputs.features(batch, path), present)
    return model, model.encode(Rows(features, labels, present, {}, joined_fields(batch, path, inputs, present)))


def test_a_model_no_better_than_the_median_is_told_first(noise, page):
    text = checked(noise)
    first = headings(text)[0]
    assert re.match(r"The model is (no|not measurably|hardly) better than always predicting \d: MAE \d\.\d+ against \d\.\d+", first)
    assert "try --kernel rbf" in text
    assert "<aside" not in page.read_text(encoding="utf-8")


def test_rows_unlike_those_of_training_are_told_of(page):
    model, measured = parts_of(page)
    upside_down = replace(measured, rows=replace(measured.rows, labels=6 - measured.rows.labels))
    text = make_report(model, upside_down, "rows of other.csv")
    assert headings(text)[0].startswith("No better than always predicting 3")
    assert "So these rows differ from those of training" in words_of(text)


def test_warnings_of_training_come_first(page, noise):
    told = ["It knows few words.", "Try <others>."]
    model, measured = parts_of(page)
    text = make_report(replace(model, metadata=model.metadata | {"warnings": told}), measured, "rows of later.csv")
    assert headings(text)[0] == "Noted when the model was trained"
    assert "<li>Try &lt;others&gt;.</li>" in text
    model, measured = parts_of(noise)
    metrics = Findings(model, measured).metrics  # as if these rows had been held out
    warned = replace(model, metadata=model.metadata | {"metrics": metrics, "warnings": told})
    text = make_report(warned, measured, "rows held out")
    assert headings(text)[:2] == ["It knows few words.", "Verdict"]


def test_a_page_of_training_rows_says_so(page, tmp_path):
    path = str(page.with_name("reviews.csv"))
    assert main(["report", str(page.with_name("m.rankplane")), path, "-o", str(tmp_path / "r.html")]) == 0
    assert headings(checked(tmp_path / "r.html"))[0] == "The model was trained on these rows"


def test_joined_texts_are_shown_by_their_columns(page):
    errors = part(page.read_text(encoding="utf-8"), "Largest errors")
    for name in ("title", "review"):
        assert errors.count(f"<dt>{name}</dt>") == errors.count("<article>") > 0
    assert re.search(r"<dt>title</dt><dd[^>]*>two\nlines</dd>", re.sub("</?mark[^>]*>", "", errors))
    assert '<mark class="up"' in errors
    assert '<mark class="down"' in errors


def test_reasons_of_errors_add_up(patients):
    text = checked(patients)
    articles = re.findall(r"<article>.*?</article>", part(text, "Largest errors"), re.DOTALL)
    assert len(articles) > 3
    for article in articles:
        told = words_of(article).replace("\N{MINUS SIGN}", "-")
        values = [float(value) for value in re.findall(r"(?:age = [\d.]+|smoker=\w+|columns|bias|: ) ?([+-][\d.]+)", told)]
        *terms, score = values
        assert len(terms) >= 3
        assert sum(terms) == pytest.approx(score, abs=0.04)
    assert "age = " in words_of(articles[0])


def test_kernels_show_their_gamma_and_no_empty_card(patients, tmp_path):
    path = str(patients.with_name("patients.csv"))
    arguments = ["--target", "risk", "--ranks", "low,some,much,very high", "--kernel", "rbf", "--C", "1"]
    assert main(["train", path, *arguments, "-o", str(tmp_path / "m"), "--report", str(tmp_path / "r.html")]) == 0
    text = checked(tmp_path / "r.html")
    gamma = modelfile.read_metadata(tmp_path / "m")["choices"]["gamma"]
    assert f"kernel rbf, with gamma = {gamma:.4g}" in text.split("<main>")[0]
    assert f"gamma {gamma:.6g} kernel rbf" in words_of(part(text, "Settings"))
    assert "Most important" not in text


def test_settings_are_those_that_were_used(page, patients):
    told = words_of(part(page.read_text(encoding="utf-8"), "Settings"))
    for setting in ("column_weight ranks", "folds 5", "seed 0", "ngram_range 1, 2", "shrinking True", "holdout 0.2"):
        assert setting in told
    assert "column_weight" not in words_of(part(patients.read_text(encoding="utf-8"), "Settings"))


def test_coverage_is_that_of_predict_set(page):
    model, measured = parts_of(page)
    found, rows = Findings(model, measured), measured.rows
    shown = words_of(part(page.read_text(encoding="utf-8"), "Rank sets"))
    line = []
    for asked in COVERAGES:
        sets = model.predict_set(model.transform(rows.features), asked)
        holds = sets[np.arange(len(sets)), rows.labels - 1]
        overall, by_rank = found.coverage(asked)
        assert (overall.rate, overall.size) == (holds.mean(), sets.sum() / len(sets))
        assert by_rank[0] is None
        assert by_rank[3].rate == holds[rows.labels == 4].mean()
        line.append(f"{100 * overall.rate:.0f} % {overall.size:.1f}")
    assert f"all rows {' '.join(line)}" in shown


@pytest.mark.parametrize(
    ("counts", "is_noted"),
    [([130, 100, 80], False), ([50, 25, 25], False), ([51, 25, 24], True), ([30, 30, 30, 3], True), ([], False)],
)
def test_skew_is_noted_where_it_matters(counts, is_noted):
    assert bool(verdict.skew({str(rank): count for rank, count in enumerate(counts)})) == is_noted


def test_models_with_one_direction_show_their_columns_once(patients, tmp_path):
    path = str(patients.with_name("patients.csv"))
    arguments = ["--target", "risk", "--ranks", "low,some,much,very high", "--model", "SVOR", "--C", "1", "--kernel", "linear"]
    assert main(["train", path, *arguments, "-o", str(tmp_path / "m"), "--report", str(tmp_path / "r.html")]) == 0
    assert part(checked(tmp_path / "r.html"), "Most important columns").count('class="boundary"') == 1
    assert part(patients.read_text(encoding="utf-8"), "Most important columns").count('class="boundary"') == 3


def test_a_report_needs_rows(page, tmp_path, capsys):
    outputs = ["-o", str(tmp_path / "m"), "--report", str(tmp_path / "r")]
    arguments = ["--text", "review", "--target", "stars", "--holdout", "0"]
    assert main(["train", str(page.with_name("reviews.csv")), *arguments, *outputs]) == 2
    assert capsys.readouterr().err == "rankplane: --report needs rows to test on: use --holdout or --test.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.31, 0.94), (0.5, 0.5), (0, 1e-9), (120, 98000)])
def test_ticks_are_round_and_enclose(low, high):
    found = plots.ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high * (1 - 1e-9)
    assert 2 <= len(found) <= 8


def test_the_curve_over_c_shows_its_spread():
    Cs, errors = [0.5, 1, 2], [0.4, 0.3, 0.5]
    assert "spread" not in plots.curve_over_c(Cs, errors, 1, "MAE")
    drawn = plots.curve_over_c(Cs, errors, 1, "MAE", [0.1, 0.02, 0.3])
    bars = [tuple(map(float, found)) for found in re.findall(r'class="spread" d="M[\d.]+ ([\d.]+)h8m-4 0V([\d.]+)', drawn)]
    assert len(bars) == 3
    assert all(plots.TOP <= high < low <= plots.HEIGHT - plots.BOTTOM for low, high in bars)
    lengths = [low - high for low, high in bars]
    assert lengths[2] == pytest.approx(15 * lengths[1], rel=0.1)


PAPER = {"light": "rgb(244, 246, 249)", "dark": "rgb(15, 19, 26)"}
needs_browser = pytest.mark.skipif(BROWSER is None, reason="no chromium installed")


@needs_browser
@pytest.mark.parametrize("name", ["page", "patients", "noise"])
def test_in_a_browser(name, request, tmp_path):
    """No message, no request but the page itself, nothing wider than the screen, no faint text, and the asked colours."""
    page = request.getfixturevalue(name)
    with opened_tab(tmp_path / "profile") as tab:
        for width, scheme in [(1200, "light"), (1200, "dark"), (800, "light"), (390, "light"), (390, "dark")]:
            tab.events.clear()
            tab.open(page.as_uri(), width, scheme)
            assert [request["request"]["url"] for request in tab.seen("Network.requestWillBeSent")] == [page.as_uri()]
            for message in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
                assert tab.seen(message) == []
            assert tab.ask("document.documentElement.scrollWidth") == width
            assert tab.ask("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]
            assert tab.ask("[...document.querySelectorAll('svg')].every(svg => svg.getBoundingClientRect().height > 150)")
            # Letters of plots stay readable on a phone.
            assert tab.ask("Math.min(...[...document.querySelectorAll('svg text')].map(t => t.getBoundingClientRect().height))") > 9
            assert tab.ask(FAINT_TEXTS) == []
        picture = tab.picture()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000


@needs_browser
def test_cards_are_full_and_columns_equal(page, patients, tmp_path):
    spare = """[...document.querySelectorAll('section')].map(section => section.getBoundingClientRect().bottom -
      Math.max(...[...section.children].map(child => child.getBoundingClientRect().bottom)))"""
    widths = "[...document.querySelectorAll('.confusion tbody tr:first-child td')].map(cell => cell.getBoundingClientRect().width)"
    styles = "['up', 'down'].map(kind => getComputedStyle(document.querySelector('mark.' + kind)).textDecorationStyle)"
    with opened_tab(tmp_path / "profile") as tab:
        tab.open(page.as_uri(), 1200, "light")
        assert max(tab.ask(spare)) < 32
        assert np.ptp(tab.ask(widths)) < 0.5
        assert tab.ask(styles) == ["solid", "dotted"]  # colour is not the only sign
        tab.events.clear()
        tab.open(patients.as_uri(), 390, "light")
        assert np.ptp(tab.ask(widths)) < 0.5


@needs_browser
def test_paper_is_white(page, tmp_path):
    with opened_tab(tmp_path / "profile") as tab:
        tab.open(page.as_uri(), 800, "dark", "print")
        for element in ("body", "section"):
            assert tab.ask(f"getComputedStyle(document.querySelector('{element}')).backgroundColor") == "rgb(255, 255, 255)"
        assert tab.ask(FAINT_TEXTS) == []


@needs_browser
def test_words_of_a_stranger_do_nothing_in_a_browser(tmp_path):
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script>"
    words = enumerate([("good", "</style>"), ("bad", evil)] * 20)
    rows = [{"review": f"{evil} {word} {number}", evil: rank} for number, (word, rank) in words]
    path = write_csv(tmp_path / "evil.csv", rows)
    arguments = [
        "--text",
        "review",
        "--target",
        evil,
        "--ranks",
        f"</style>,{evil}",
        "--C",
        "1",
        "--report",
        str(tmp_path / "r.html"),
    ]
    assert main(["train", path, *arguments, "-o", str(tmp_path / "m")]) == 0
    with opened_tab(tmp_path / "profile") as tab:
        tab.open((tmp_path / "r.html").as_uri(), 800, "light")
        assert len(tab.seen("Network.requestWillBeSent")) == 1
        assert tab.ask("document.querySelectorAll('img, script').length") == 0
        assert tab.seen("Log.entryAdded") == []


def test_the_demo_offline(tmp_path, monkeypatch, capsys):
    def offline(*_):
        raise datasets.OfflineError("no network")

    monkeypatch.setattr(datasets, "fetch_rated_sentences", offline)
    assert main(["demo", "-o", str(tmp_path)]) == 0
    story = " ".join(capsys.readouterr().out.split())
    assert "generated reviews instead" in story
    assert "planes were trained" in story
    assert sorted(path.name for path in tmp_path.iterdir()) == [demo.PAGE, demo.MODEL]
    assert main(["explain", str(tmp_path / demo.MODEL), "the battery is awful"]) == 0
