"""Result lines: JSON, one result each, with the commit and the machine that it comes from."""

import json
import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from lab import ROOT

Line = dict[str, Any]
PACKAGES = ("rankplane", "numpy", "scipy", "scikit-learn", "liblinear-official", "mord", "fasttext-wheel", "skordinal")


def read_lines(path: Path) -> list[Line]:
    """All lines of a file; none if it does not exist."""
    content = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in content if line]


def append_line(path: Path, line: Line) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")


def now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def commit(folder: str) -> str:
    """The commit measured, marked when sources differ from it: those of ``folder`` and what it is built on, but no results."""
    try:
        name = git("rev-parse", "--short=12", "HEAD")
        changed = git("status", "--porcelain", "--", "src", "lab", folder, f":!{folder}/results")
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return name + ("+changes" if changed else "")


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def machine() -> dict[str, Any]:
    """The hardware and system, without anything that names the machine."""
    return {
        "processor": processor_name(),
        "cores": n_cores(),
        "memory_gb": round(total_memory() / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "huge_pages": huge_pages(),
    }


def n_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def processor_name() -> str:
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":", 1)[1].strip()
    except OSError:
        pass
    return platform.processor() or platform.machine()


def total_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError):
        return 0


def huge_pages() -> str:
    try:
        setting = Path("/sys/kernel/mm/transparent_hugepage/enabled").read_text()
        return setting[setting.index("[") + 1 : setting.index("]")]
    except (OSError, ValueError):
        return "unknown"


def versions() -> dict[str, str]:
    found = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found
