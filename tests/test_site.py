"""The site: its pages name everything public, and the check of the built pages finds what is wrong with them."""

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import pytest

import rankplane
from rankplane import datasets, metrics

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def load_check():
    spec = importlib.util.spec_from_file_location("check_site", DOCS / "check_site.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def names_on_api_page():
    """By module, the entries of its lists."""
    module, names = "", {}
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if found := re.match(r"\.\. currentmodule:: (\S+)", line):
            module = found[1]
        elif found := re.match(r"   (\w+)$", line):
            names.setdefault(module, set()).add(found[1])
    return names


def test_api_page_has_every_public_name():
    assert names_on_api_page()["rankplane"] == set(rankplane.__all__)


@pytest.mark.parametrize("path", sorted((ROOT / "src" / "rankplane").rglob("*.py")), ids=lambda path: path.stem)
def test_api_page_has_every_name_of_public_modules(path):
    """Those that the page has a section of; read from the sources, since not all of them can be imported everywhere."""
    parts = path.relative_to(ROOT / "src").with_suffix("").parts
    module = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    listed = names_on_api_page()
    if module in listed:
        names = next(
            ast.literal_eval(node.value)
            for node in ast.parse(path.read_text(encoding="utf-8")).body
            if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        )
        assert listed[module] - {"scorers"} == set(names) - {"scorers"}


def test_api_page_has_every_metric_and_names_that_exist():
    names = names_on_api_page()
    functions = {name: value for name, value in vars(metrics).items() if inspect.isfunction(value)}
    measures = {name for name, value in functions.items() if "y_true" in inspect.signature(value).parameters}
    assert len(measures) > 5
    assert measures - {"as_positions"} <= names["rankplane.metrics"]
    for module, listed in ((metrics, names["rankplane.metrics"]), (datasets, names["rankplane.datasets"])):
        assert all(inspect.getdoc(getattr(module, name)) for name in listed)


def test_every_page_is_in_the_table_of_contents():
    toctree = re.search(r"```\{toctree\}\n(.*?)```", (DOCS / "index.md").read_text(encoding="utf-8"), flags=re.DOTALL)[1]
    listed = set(re.findall(r"<(\S+)>", toctree))
    pages = {path.stem for path in DOCS.iterdir() if path.suffix in (".md", ".rst")} - {"index"}
    assert listed - {"gallery/index"} == pages


def test_figure_of_the_architecture_names_what_exists():
    figure = (DOCS / "architecture.svg").read_text(encoding="utf-8")
    names = re.findall(r'class="name">([^<]+)<', figure)
    assert len(names) > 10
    for name in names:
        assert any((ROOT / "src" / part / name).exists() for part in ("rankplane", "core")), name


@pytest.mark.parametrize("page", sorted(DOCS.glob("*.md")), ids=lambda page: page.name)
def test_included_parts_exist(page):
    for directive in re.findall(r"```\{include\} (.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL):
        path, *options = directive.splitlines()
        text = (DOCS / path).read_text(encoding="utf-8")
        for marker in re.findall(r":(?:start-after|end-before): (.+)", "\n".join(options)):
            assert text.count(marker) == 1, marker


def test_check_passes_a_whole_site(tmp_path):
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "index.html").write_text('<h1 id="top">x</h1><img src="../a.png"><a href="../index.html">up</a>')
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(
        '<a href="below/#top">x</a><a href="below/index.html">x</a><a href="https://example.org/">elsewhere, on a click</a>'
        '<a href="#here">x</a><p id="here"><img src="data:image/png;base64,AAAA">'
    )
    assert list(load_check().problems_of(tmp_path)) == []
    assert load_check().main(tmp_path) == 0


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        ('<a href="gone.html">x</a>', "links to gone.html, which does not exist"),
        ('<a href="#gone">x</a>', "links to #gone: the page has no such anchor"),
        ('<a href="index.html#gone">x</a>', "links to index.html#gone: the page has no such anchor"),
        ('<img src="gone.png">', "links to gone.png, which does not exist"),
        ('<script src="https://example.org/a.js"></script>', "loads https://example.org/a.js from another host"),
        ('<script src="//example.org/a.js"></script>', "loads //example.org/a.js from another host"),
        ('<link rel="stylesheet" href="https://example.org/a.css">', "loads https://example.org/a.css from another host"),
        ('<link rel="preconnect" href="https://example.org">', "loads https://example.org from another host"),
        ('<img srcset="https://example.org/a.png 2x">', "loads https://example.org/a.png from another host"),
        ("<style>@import 'https://example.org/a.css';</style>", "loads https://example.org/a.css from another host"),
        ('<p style="background: url(https://example.org/a.png)">', "loads https://example.org/a.png from another host"),
    ],
)
def test_check_finds(fault, words, tmp_path, capsys):
    (tmp_path / "index.html").write_text(fault)
    assert load_check().main(tmp_path) == 1
    assert capsys.readouterr().out.splitlines() == [f"index.html {words}"]


def test_check_reads_style_sheets(tmp_path):
    (tmp_path / "index.html").write_text("")
    (tmp_path / "a.css").write_text("@font-face { src: url('https://example.org/a.woff2') }")
    assert list(load_check().problems_of(tmp_path)) == ["a.css loads https://example.org/a.woff2 from another host"]


def test_check_refuses_an_empty_folder(tmp_path):
    assert load_check().main(tmp_path) == 1
