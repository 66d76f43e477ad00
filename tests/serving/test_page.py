"""The page in a real browser: typed into, clicked, dropped onto, read aloud and used without a mouse; it asks its server only."""

import json
import os

import pytest

from browser import BROWSER, FAINT_CONTROLS, FAINT_TEXTS, opened_tab
from rankplane import load_model, predict_rows
from reviews import make_rows, read_csv, write_csv
from server import serving

pytestmark = pytest.mark.skipif(BROWSER is None, reason="no chromium installed")
TEXT = "the great phone was awful and broken"
SHOWN = "!document.getElementById('{}').hidden"
PAPER = {"light": "rgb(244, 246, 249)", "dark": "rgb(15, 19, 26)"}
LABELS = """[...document.querySelectorAll('input, select, textarea')].filter(control => !control.labels.length).map(c => c.id)"""


@pytest.fixture(scope="module")
def tab(tmp_path_factory):
    with opened_tab(tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.fixture
def visit(tab, server):
    """Opens the page, with a model; what the page did wrong is an error at the end."""

    def opened(model="stars", width=1200, scheme="light", url=server.url):
        tab.open("about:blank", width, scheme)
        tab.events.clear()
        tab.open(f"{url}#{model}", width, scheme)
        tab.until(SHOWN.format("desk"))

    yield opened
    for message in ("Runtime.consoleAPICalled", "Runtime.exceptionThrown"):
        assert tab.seen(message) == []
    addresses = [request["request"]["url"] for request in tab.seen("Network.requestWillBeSent")]
    assert all(address.startswith((server.url, "blob:", "about:", "data:")) for address in addresses)


def text_of(tab, selector):
    return tab.ask(f"document.querySelector({json.dumps(selector)}).innerText")


def table_of(tab):
    return tab.ask("[...document.querySelectorAll('tbody tr')].map(row => [...row.children].map(cell => cell.innerText))")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 800, 1280])
def test_a_text(tab, visit, server, width, scheme):
    visit(width=width, scheme=scheme)
    tab.click("#field-0")
    tab.type(TEXT)
    tab.until(SHOWN.format("answer"))
    (prediction,) = server.predict(model="stars", text=TEXT, set=0.9)["predictions"]
    assert text_of(tab, ".rank").split() == ["stars", str(prediction["rank"])]
    members = prediction["set"]
    words = f"{members[0]}\N{EN DASH}{members[-1]}" if len(members) > 1 else str(members[0])
    assert text_of(tab, ".sure") == f"{words} with 90 % certainty"
    probabilities = list(prediction["probabilities"].values())
    shares = [round(100 * share) for share in probabilities]
    shown = tab.ask("[...document.querySelectorAll('#answer .share')].map(share => share.innerText)")
    assert [int(share.removeprefix("< ").split()[0]) for share in shown] == [max(share, 1) for share in shares]
    lengths = tab.ask("[...document.querySelectorAll('#answer .fill')].map(bar => bar.getBoundingClientRect().width)")
    assert max(lengths) == lengths[probabilities.index(max(probabilities))]
    assert tab.ask("[...document.querySelectorAll('.text mark.up')].map(word => word.innerText)").count("great") == 1
    assert {"awful", "broken"} <= set(tab.ask("[...document.querySelectorAll('.text mark.down')].map(word => word.innerText)"))
    assert text_of(tab, ".text") == TEXT
    assert "boundary" in text_of(tab, ".decided")
    assert len(tab.ask("[...document.querySelectorAll('.scale .axis')].map(axis => axis.className)")) == 4
    # What a screen reader says of it.
    assert text_of(tab, "#status").startswith(
        f"stars {prediction['rank']}, {round(100 * prediction['probabilities'][str(prediction['rank'])])} %"
    )
    assert tab.ask("document.documentElement.scrollWidth") == width
    assert tab.ask("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]
    assert tab.ask(FAINT_TEXTS) == tab.ask(FAINT_CONTROLS) == []
    assert tab.ask(LABELS) == []
    assert len(tab.picture()) > 20_000
    tab.click("#clear")
    assert tab.ask("document.getElementById('answer').hidden && document.getElementById('why-card').hidden")
    assert tab.ask("document.activeElement.id") == "field-0"


def test_without_a_mouse(tab, visit):
    visit()
    assert tab.ask("document.activeElement.id") == "field-0"
    tab.type("superb")
    tab.press("Enter", modifiers=2)
    tab.until(SHOWN.format("answer"))
    order = []
    for _ in range(4):
        tab.press("Tab")
        order.append(tab.ask("document.activeElement.id"))
        assert tab.ask("document.activeElement.matches(':focus-visible')")
        assert tab.ask(FAINT_CONTROLS) == []
    assert order == ["predict", "file", "clear", ""]
    assert tab.ask("document.activeElement.innerText") == "How programs use this server"
    tab.press("Tab", modifiers=8)
    tab.press(" ")
    assert tab.ask("document.getElementById('answer').hidden")


def test_several_lines_become_a_table(tab, visit, stars):
    visit()
    lines = ["superb, the best", 'awful\t"waste"', "", "the phone"]
    tab.type("\n".join(lines))
    tab.until(f"{SHOWN.format('table-card')} && {SHOWN.format('download')}")
    expected = load_model(stars).predict([line for line in lines if line]).tolist()
    assert [(row[-1].split()[0], int(row[1])) for row in table_of(tab)] == [
        ("superb,", expected[0]),
        ("awful", expected[1]),
        ("the", expected[2]),
    ]
    assert tab.ask(FAINT_TEXTS) == []
    tab.click("tbody tr:nth-child(2) button")
    tab.until(SHOWN.format("why-card"))
    assert "awful" in text_of(tab, ".text")
    assert tab.ask("document.activeElement.id") == "answer-heading"
    # A review of several paragraphs is one text after all.
    tab.click("#lines")
    tab.until("document.getElementById('table-card').hidden")
    tab.until("document.querySelector('.text').innerText.includes('superb')")
    assert "waste" in text_of(tab, ".text")


@pytest.mark.parametrize("way", ["drop", "choose"])
@pytest.mark.parametrize(("name", "delimiter"), [("stars", ","), ("grades", ";"), ("risk", "\t")])
def test_a_file_becomes_a_table_to_download(tab, visit, tmp_path, request, folder, way, name, delimiter):
    model = load_model(request.getfixturevalue(name))
    rows = make_rows(230, seed=4)
    for row in rows:
        row["review"] = f'{row["review"]}, "quoted"{delimiter}\nand on'
    rows = [{"id": row["id"], "title": row["title"], "review": row["review"]} for row in rows]
    if name == "risk":
        rows = [{"id": n, "age": "" if n == 3 else 20 + n, "smoker": ["yes", "no", ""][n % 3]} for n in range(40)]
    path = write_csv(tmp_path / "new.csv", rows, delimiter)
    visit(name)
    tab.drop("#desk", path) if way == "drop" else tab.choose("#file", path)
    tab.until(f"{SHOWN.format('table-card')} && {SHOWN.format('download')}")
    (tmp_path / "downloads").mkdir()
    table = read_csv(tab.download("#download", tmp_path / "downloads"))
    assert list(table[0]) == [*rows[0], "prediction", *(f"p_{label}" for label in model.classes_), "set"]
    assert [{key: row[key] for key in rows[0]} for row in table] == [
        {key: str(value) for key, value in row.items()} for row in rows
    ]
    given = [{key: value if value != "" else None for key, value in row.items()} for row in rows]
    assert [row["prediction"] for row in table] == [str(rank) for rank in predict_rows(model, given)]
    shown = table_of(tab)
    assert len(shown) == len(rows)
    assert os.listdir(tmp_path / "downloads") == ["predictions.csv"]
    assert text_of(tab, "#table-heading") == f"{len(rows)} predictions for new.csv"
    assert tab.ask(FAINT_TEXTS) == []


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("stars", "", "it is empty."),
        ("stars", "review\n", "it has no rows under its header."),
        ("stars", "a,b\n1,2\n", 'it has no column "review"; its columns are a, b.'),
        ("stars", "id,review\n1,2,3\n", "line 2: 3 fields, but the header has 2."),
        ("stars", 'id,review\n1,"2\n3\n', "line 2: a quote is opened and never closed."),
        ("stars", 'id,review\n1,"2"3\n', "line 2: a quote is closed in the middle of a field; quotes within a field are doubled."),
        ("stars", "review,review\n1,2\n", 'column "review" occurs twice.'),
        ("risk", "age,smoker\nold,yes\n", "rows[0]: Column 'age' must hold numbers, as it did in training. Got 'old'."),
    ],
)
def test_files_that_cannot_be_used(tab, visit, tmp_path, name, content, sentence):
    (tmp_path / "bad.csv").write_text(content)
    visit(name)
    tab.choose("#file", tmp_path / "bad.csv")
    tab.until(SHOWN.format("problem"))
    assert text_of(tab, "#problem") == f"bad.csv: {sentence}"
    assert tab.ask("document.getElementById('problem').getAttribute('role')") == "alert"
    assert tab.ask("document.getElementById('table-card').hidden")
    assert tab.ask(FAINT_TEXTS) == []


def test_columns_and_numbers(tab, visit, server):
    visit("risk")
    assert tab.ask(LABELS) == []
    tab.type("71")
    tab.press("Tab")
    tab.press("ArrowDown")
    tab.press("ArrowDown")
    tab.until(SHOWN.format("answer"))
    expected = server.predict(model="risk", row={"age": 71, "smoker": "yes"})["predictions"][0]["rank"]
    tab.until(f"document.querySelector('.rank').innerText.includes({json.dumps(expected)})")
    assert "the row lies" in text_of(tab, ".decided")
    visit("numbers")
    tab.type("1:3.5 4:2")
    tab.until(SHOWN.format("answer"))
    assert tab.ask("document.getElementById('why-card').hidden")
    tab.type(" oops")
    tab.until(SHOWN.format("problem"))
    assert text_of(tab, "#problem") == "Write pairs such as 1:0.5, a column number and its value. Got oops."


def test_another_model(tab, visit):
    visit("stars")
    assert text_of(tab, "#title") == "stars"
    tab.ask("document.getElementById('model').focus(), 0")
    tab.press("ArrowDown")
    tab.until("document.getElementById('title').innerText === 'grades'")
    assert tab.ask("document.querySelectorAll('#fields textarea').length") == 2
    assert tab.ask("location.hash") == "#grades"


def test_words_of_a_stranger_do_nothing(tab, visit):
    visit()
    evil = "<img src=x onerror=alert(1)><script>alert(2)</script> great"
    tab.type(evil)
    tab.until(SHOWN.format("why-card"))
    assert text_of(tab, ".text") == evil
    tab.type(f"\n{evil}")
    tab.until(SHOWN.format("table-card"))
    assert tab.ask("document.querySelectorAll('main img, main script').length") == 0


def test_too_much_is_refused_in_the_words_of_the_server(tab, visit):
    visit()
    tab.ask("document.getElementById('field-0').value = 'great '.repeat(1000), 0")
    tab.click("#predict")
    tab.until(SHOWN.format("problem"))
    assert text_of(tab, "#problem") == "text must have at most 5,000 characters. Got 6,000."


def test_a_server_with_a_token(tab, stars, tmp_path):
    (tmp_path / "token").write_text("correct-horse-battery")
    with serving(stars, "--token-file", tmp_path / "token") as server:
        tab.open(server.url, 800, "light")
        tab.until(SHOWN.format("token-form"))
        assert tab.ask("document.activeElement.id") == "token"
        tab.type("wrong")
        tab.press("Enter")
        tab.until("document.getElementById('about').innerText === 'That token is not valid.'")
        tab.type("correct-horse-battery")
        tab.press("Enter")
        tab.until(SHOWN.format("desk"))
        tab.type("great")
        tab.until(SHOWN.format("answer"))
        server.stop()
        tab.type(" phone")
        tab.until(SHOWN.format("problem"))
        assert text_of(tab, "#problem") == "The server does not answer."


def test_the_reference(tab, server):
    for width, scheme in ((1200, "light"), (390, "dark")):
        tab.open(f"{server.url}docs", width, scheme)
        assert tab.ask("document.documentElement.scrollWidth") == width
        # Nor is a part of a table out of sight.
        assert tab.ask("[...document.querySelectorAll('.wide')].every(box => box.scrollWidth <= box.clientWidth)")
        assert tab.ask("getComputedStyle(document.body).backgroundColor") == PAPER[scheme]
        assert tab.ask(FAINT_TEXTS) == []
