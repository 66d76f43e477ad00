"""Every command of the documents runs, in the order of its page."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from rankplane.cli import main
from reviews import make_rows, write_csv

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def commands_of(page):
    blocks = re.findall(r"```sh\n(.*?)```", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    return [line for block in blocks for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("page", [page for page in PAGES if commands_of(page)], ids=lambda page: page.name)
def test_commands_run(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [
        row | {"price": 5 + n % 40, "category": ["toys", "tools"][n % 2], "bought": f"2026-01-{1 + n % 28:02}"}
        for n, row in enumerate(make_rows(150))
    ]
    write_csv("reviews.csv", rows)
    # New rows are those whose ranks nobody knows yet.
    write_csv("new.csv", [{name: row[name] for name in ("id", "title", "review")} for row in make_rows(20, seed=1)])
    write_csv("later.csv", make_rows(50, seed=2))
    patients = [
        {"age": 20 + n % 60, "smoker": "yes" if n % 3 else "no", "risk": ["low", "medium", "high"][n % 60 // 20]}
        for n in range(120)
    ]
    write_csv("patients.csv", patients)
    write_csv("later-patients.csv", patients[::-2])
    for command in commands_of(page):
        if "|" in command:
            environment = {**os.environ, "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.environ['PATH']}"}
            done = subprocess.run(command, shell=True, capture_output=True, text=True, env=environment)
            assert done.returncode == 0, (command, done.stderr)
        else:
            program, *arguments = shlex.split(command)
            assert program == "rankplane"
            assert main(arguments) == 0, (command, capsys.readouterr().err)


def test_promises_are_held_by_tests_that_exist():
    page = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
    named = re.findall(r"`((?:\w+/)?test_\w+)::(test_\w+)`", page)
    assert len(named) > 30
    for file, test in named:
        assert f"def {test}(" in (ROOT / "tests" / f"{file}.py").read_text(encoding="utf-8"), f"{file}::{test}"
