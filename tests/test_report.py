"""The page about a model: complete, self-contained, and at home in a real browser."""

import html.parser
import re

import pytest

from browser import BROWSER, opened_tab
from rankplane import datasets, demo, plots
from rankplane.cli import main
from test_cli import make_rows, write_csv


class Checker(html.parser.HTMLParser):
    """Every opened element is closed, and nothing points elsewhere."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.links = [], set(), []

    def handle_starttag(self, tag, attributes):
        self.seen.add(tag)
        self.links += [value for name, value in attributes if name in ("src", "href", "action", "srcset")]
        if tag not in ("meta", "link", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.seen.add(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("report")
    rows = make_rows(300)
    rows[0]["review"] = "<script>alert(1)</script> " + rows[0]["review"]
    rows[0]["stars"] = 6 - rows[0]["stars"]
    rows[1]["review"] = ""
    path = write_csv(folder / "reviews.csv", rows + rows[:30])
    arguments = ["--text", "review", "--target", "stars", "-o", str(folder / "m.rankplane"), "--report", str(folder / "train.html")]
    assert main(["train", path, *arguments]) == 0
    assert main(["report", str(folder / "m.rankplane"), path, "-o", str(folder / "page.html")]) == 0
    return folder / "page.html"


def test_the_page_is_complete(page):
    for path in (page, page.with_name("train.html")):
        text = path.read_text(encoding="utf-8")
        checker = Checker()
        checker.feed(text)
        assert checker.open == []
        assert checker.links == ["data:,"]
        assert "http:" not in text
        assert "https:" not in text
        assert "default-src 'none'" in text
        assert "script" not in checker.seen
        assert text.count("<svg") == 4
        assert "prefers-color-scheme: dark" in text
        assert 'name="viewport"' in text
        headings = re.findall(r"<h2>(.*?)</h2>", text)
        assert headings == [
            "Summary",
            "Beside the baselines",
            "Choice of C",
            "Confusion matrix",
            "Reliability",
            "Error by rank",
            "Data",
            "Telling terms",
            "Largest errors",
            "Settings",
        ]
        assert "exact copies" in text
        assert "texts are empty" in text
        assert "<pre>rankplane train reviews.csv --text review --target stars --model NPSVOR" in text
        assert '<mark class="down"' in text
        assert not re.search(r"\bnan\b", text)


def test_tables_of_columns_have_a_page_too(tmp_path):
    rows = [{"age": age, "risk": 1 + age // 30} for age in range(0, 90)]
    path = write_csv(tmp_path / "risk.csv", rows)
    output = str(tmp_path / "m")
    assert main(["train", path, "--target", "risk", "-o", output, "--C", "1", "--report", str(tmp_path / "r.html")]) == 0
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "Choice of C" not in text
    assert "Telling terms" in text


def test_a_report_needs_rows(page, tmp_path, capsys):
    arguments = [
        "--text",
        "review",
        "--target",
        "stars",
        "-o",
        str(tmp_path / "m"),
        "--report",
        str(tmp_path / "r"),
        "--holdout",
        "0",
    ]
    assert main(["train", str(page.with_name("reviews.csv")), *arguments]) == 2
    assert capsys.readouterr().err == "rankplane: --report needs rows to measure on: use --holdout or --test.\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("low", "high"), [(0, 1), (0.31, 0.94), (0.5, 0.5), (0, 1e-9), (120, 98000)])
def test_ticks_are_round_and_enclose(low, high):
    found = plots.ticks(low, high)
    assert found[0] <= low
    assert found[-1] >= high * (1 - 1e-9)
    assert 2 <= len(found) <= 8


PAPER = {"light": "rgb(246, 247, 249)", "dark": "rgb(15, 19, 26)"}


@pytest.mark.skipif(BROWSER is None, reason="no chromium installed")
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (1200, "dark"), (390, "light"), (390, "dark")])
def test_in_a_browser(page, width, scheme, tmp_path):
    """No message, no request but the page itself, nothing wider than the screen, and the colours that the reader asked for."""
    with opened_tab(tmp_path / "profile") as tab:
        tab.open(page.as_uri(), width, scheme)
        assert [request["request"]["url"] for request in tab.seen("Network.requestWillBeSent")] == [page.as_uri()]
        for message in ("Log.entryAdded", "Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
            assert tab.seen(message) == []
        assert tab.ask("document.documentElement.scrollWidth") == width
        assert tab.ask("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]
        assert tab.ask("[...document.querySelectorAll('svg')].every(svg => svg.getBoundingClientRect().height > 150)")
        # Letters of plots stay readable on a phone.
        size = "const t = document.querySelector('svg text'); t.getBoundingClientRect().height"
        assert tab.ask(size) > 9
        picture = tab.picture()
    assert picture.startswith(b"\x89PNG")
    assert len(picture) > 50_000


@pytest.mark.skipif(BROWSER is None, reason="no chromium installed")
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
    assert "made-up reviews instead" in story
    assert "planes trained on the way" in story
    assert sorted(path.name for path in tmp_path.iterdir()) == [demo.PAGE, demo.MODEL]
    assert main(["explain", str(tmp_path / demo.MODEL), "the battery is awful"]) == 0
