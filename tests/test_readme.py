"""What the documents promise runs."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = [
    pytest.param(code, id=f"{path.name}-{i}")
    for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for i, code in enumerate(re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL))
]


@pytest.mark.parametrize("code", SNIPPETS)
def test_snippet_runs(code, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # snippets may write files
    exec(compile(code, "snippet", "exec"), {})
    shown = capsys.readouterr().out
    assert "print" not in code or shown
    # A reader wants words, not the numbers of their columns.
    assert not re.search(r"\bcolumn \d", shown)


def test_readme_shows_what_its_code_prints(capsys):
    page = (ROOT / "README.md").read_text(encoding="utf-8")
    ((code, shown),) = re.findall(r"```python\n(.*?)```\s+```text\n(.*?)```", page, flags=re.DOTALL)
    exec(compile(code, "snippet", "exec"), {})
    assert capsys.readouterr().out == shown


SOURCES = ROOT / "src" / "rankplane"
EXAMPLES = [path for path in sorted(SOURCES.rglob("*.py")) if ">>> " in path.read_text(encoding="utf-8")]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_docstring_examples(path, tmp_path, monkeypatch):
    import doctest
    import importlib

    parts = path.relative_to(SOURCES.parent).with_suffix("").parts
    for package, needed in {"dask": "distributed", "spark": "pyspark"}.items():
        if package in parts:
            pytest.importorskip(needed)
    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testmod(importlib.import_module(".".join(parts)))
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_pictures_exist(page):
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / path).is_file(), path
