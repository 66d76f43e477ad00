"""Time the vectorizers: python -m benchmarks.vectorize.run --data FOLDER, from the root of the project.

Answers are compared with scikit-learn's before times are kept: the same columns, the same nonzeros, values to 1e-6. A
competitor with rules of its own is shown with what it answered. Runs are interleaved, the best of several counts.
"""

import argparse
import gc
import importlib
import json
import os
import platform
import subprocess
import time
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from benchmarks.vectorize.tasks import TASKS, Task, read_texts

COMPETITORS = ("rankplane", "scikit_learn", "lenlp")
RESULTS = Path("benchmarks/results/vectorize.jsonl")


def machine() -> dict[str, Any]:
    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    return {
        "cpu": cpu,
        "n_processors": os.cpu_count(),
        "system": platform.system(),
        "python": platform.python_version(),
    }


def commit() -> str:
    return subprocess.run(["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True).stdout.strip()


def names_of(vectorizer: Any) -> list[str] | None:
    if hasattr(vectorizer, "get_feature_names_out"):
        return list(vectorizer.get_feature_names_out())
    return None


def agrees(matrix: Any, names: list[str] | None, expected: Any, expected_names: list[str] | None) -> bool:
    if matrix.shape != expected.shape or matrix.nnz != expected.nnz or names != expected_names:
        return False
    expected.sort_indices()
    return bool(np.array_equal(matrix.indices, expected.indices) and np.allclose(matrix.data, expected.data, 0, 1e-6))


def measure(task: Task, texts: list[str], modules: dict[str, ModuleType], n_threads: int, n_rounds: int) -> list[dict[str, Any]]:
    """Seconds per competitor and what it answered, the reference first."""
    n_train = len(texts) * 7 // 10 if task.is_transform else 0
    timed = texts[n_train:]
    seconds: dict[str, list[float]] = {name: [] for name in modules}
    answers: dict[str, dict[str, Any]] = {}
    expected: Any = None
    expected_names: list[str] | None = None
    for _ in range(n_rounds):
        for name, module in modules.items():
            vectorizer = module.make(task, n_threads)
            if vectorizer is None:
                continue
            if task.is_transform:
                vectorizer.fit(texts[:n_train])
            gc.collect()
            start = time.perf_counter()
            matrix = module.run(vectorizer, timed, task.is_transform)
            seconds[name].append(time.perf_counter() - start)
            if name not in answers:
                names = None if task.is_hashed else names_of(vectorizer)
                if name == "scikit_learn":
                    expected, expected_names = matrix, names
                is_same = agrees(matrix, names, expected, expected_names)
                if name == "rankplane" and not is_same:
                    raise SystemExit(f"{task.name}: the answer differs from scikit-learn's; its time means nothing.")
                answers[name] = {"is_same_answer": is_same, "n_columns": matrix.shape[1], "n_entries": matrix.nnz}
            del matrix, vectorizer
    n_bytes = sum(len(text.encode("utf-8", "surrogatepass")) for text in timed)
    return [
        {
            "competitor": name,
            "seconds": round(min(own), 4),
            "all_seconds": [round(value, 4) for value in own],
            "megabytes_per_second": round(n_bytes / 1e6 / min(own), 1),
            "times_faster_than_scikit_learn": round(min(seconds["scikit_learn"]) / min(own), 2),
            **answers[name],
        }
        for name, own in seconds.items()
        if own
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="folder of parquet files with a column `text`")
    parser.add_argument("--sets", nargs="+", default=["largemovie", "douban", "tripadvisor_250k"])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=list(TASKS))
    parser.add_argument("--competitors", nargs="+", default=list(COMPETITORS), choices=COMPETITORS)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--documents", type=int, default=None, help="only the first so many")
    arguments = parser.parse_args()
    # scikit-learn gives the reference, so it goes first.
    names = ["scikit_learn", *(name for name in arguments.competitors if name != "scikit_learn")]
    modules = {name: importlib.import_module(f"benchmarks.vectorize.{name}") for name in names}
    RESULTS.parent.mkdir(parents=True, exist_ok=True)
    for data in arguments.sets:
        texts = read_texts(arguments.data, data, arguments.documents)
        for task in (TASKS[name] for name in arguments.tasks):
            for line in measure(task, texts, modules, arguments.threads, arguments.rounds):
                versions = {name: version(name) for name in modules[line["competitor"]].DISTRIBUTIONS}
                record = {
                    "data": data,
                    "task": task.name,
                    "n_documents": len(texts),
                    "n_threads": arguments.threads,
                } | line
                record |= {"load": os.getloadavg()[0], "machine": machine(), "versions": versions, "commit": commit()}
                with RESULTS.open("a") as file:
                    file.write(json.dumps(record) + "\n")
                print(
                    f"{data:18} {task.name:18} {line['competitor']:13} {line['seconds']:9.3f} s "
                    f"{line['megabytes_per_second']:8.1f} MB/s {line['times_faster_than_scikit_learn']:7.2f} x "
                    f"{'same' if line['is_same_answer'] else 'other'} answer, {line['n_columns']} columns",
                    flush=True,
                )


if __name__ == "__main__":
    main()
