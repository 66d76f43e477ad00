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


EXAMPLES = ["datasets", "estimators", "metrics", "modelfile", "onnx", "prediction.decisions", "recalibration", "search", "tabular"]
EXAMPLES += ["text.vectorizer"]


@pytest.mark.parametrize("module", EXAMPLES)
def test_docstring_examples(module, tmp_path, monkeypatch):
    import doctest
    import importlib

    monkeypatch.chdir(tmp_path)
    failed, attempted = doctest.testmod(importlib.import_module(f"rankplane.{module}"))
    assert attempted > 0
    assert failed == 0


@pytest.mark.parametrize("page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name)
def test_pictures_exist(page):
    for path in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / path).is_file(), path
