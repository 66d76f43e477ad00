"""From a csv of reviews to a tested model and to predictions: ``python -m benchmarks.scaling.end_to_end --rows 250000 1000000``.

Each step is a process of its own: reading the file by the standard library and with pyarrow, ``rankplane train``, ``rankplane
predict``. Its seconds and its peak memory are taken from outside, the MAE is that of the rows that training held out.

There are 250,000 reviews of hotels. More rows are the same reviews again, with the words shuffled within their sentences, so that
hardly any text is a copy: this is for time and memory only. The MAE of such rows says nothing about reviews, since every held-out
one has others like it in training.
"""

import argparse
import csv
import itertools
import json
import random
import re
import subprocess
import sys
from pathlib import Path

from rich.table import Table

from benchmarks.common import Log
from lab import ROOT
from lab.data import data_folder
from lab.display import console
from lab.memory import run_measured
from lab.results import Line, n_cores

SET = "tripadvisor_250k"
KEPT = ROOT / "build" / "end_to_end"
SENTENCE = re.compile(r"(?<=[.!?])\s+")
TASKS = ("read by the standard library", "read with pyarrow", "train", "predict")


def shuffled(text: str, rng: random.Random) -> str:
    """The words of each sentence in another order."""
    sentences = [sentence.split(" ") for sentence in SENTENCE.split(text)]
    for words in sentences:
        rng.shuffle(words)
    return " ".join(word for words in sentences for word in words)


def make_csv(source: Path, n_rows: int, path: Path) -> None:
    """So many reviews as a csv file; those beyond the set with their words shuffled."""
    import pyarrow.parquet as pq

    rng, n_written = random.Random(0), 0
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["text", "rating"])
        for number in itertools.count():
            for batch in pq.ParquetFile(source).iter_batches(5000, columns=["text", "rating"]):
                texts, ranks = (batch.column(name).to_pylist()[: n_rows - n_written] for name in ("text", "rating"))
                writer.writerows(zip((shuffled(text, rng) for text in texts) if number else texts, ranks, strict=True))
                n_written += len(texts)
            if n_written == n_rows:
                return


def kept_csv(folder: Path, n_rows: int) -> Path:
    """The file, made before or now, in another process: what one has in memory counts as the peak of those that it starts."""
    path = KEPT / f"{SET}-{n_rows}.csv"
    if not path.exists():
        KEPT.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(".partial")
        command = [sys.executable, "-m", __spec__.name, "--make", folder / f"{SET}.parquet", str(n_rows), draft]
        subprocess.run(command, check=True, cwd=ROOT)
        draft.rename(path)
    return path


def read(path: str, has_pyarrow: bool) -> int:
    """The number of rows of a file that is read as by train."""
    if not has_pyarrow:
        sys.modules["pyarrow"] = None  # type: ignore[assignment]
    from rankplane.inputs.reading import read_all

    return len(read_all(path, keep=["text", "rating"]))


def command_of(task: str, path: Path, jobs: int, model: Path) -> list[str]:
    if task.startswith("read"):
        return [sys.executable, "-m", __spec__.name, "--read", str(path), "pyarrow" if "pyarrow" in task else "alone"]
    rankplane = [sys.executable, "-m", "rankplane", task]
    if task == "train":
        return [*rankplane, str(path), "--text", "text", "--target", "rating", "--jobs", str(jobs), "--json", "-o", str(model)]
    return [*rankplane, str(model), str(path), "--jobs", str(jobs), "-o", str(model.with_suffix(".predicted.csv"))]


def measure(task: str, path: Path, n_rows: int, jobs: int) -> Line:
    model = path.with_suffix(".rankplane")
    done = run_measured(command_of(task, path, jobs, model))
    seconds = {"seconds": round(done.seconds, 2), "processor_seconds": round(done.processor_seconds, 2)}
    line: Line = {"task": task, "rows": n_rows, "bytes": path.stat().st_size, "threads": jobs}
    line |= seconds | {"peak_bytes": done.peak_bytes}
    if task == "train":
        told = json.loads(done.output)
        line |= {"mae": told["metrics"]["model"]["mae"], "C": told["choices"]["C"], "columns": told["data"]["columns"]}
    return line


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.scaling.end_to_end", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets (default: ../shared/data if it is there)")
    parser.add_argument("--rows", nargs="+", type=int, default=[250_000, 1_000_000])
    parser.add_argument("--jobs", nargs="+", type=int, default=[n_cores()], help="numbers of threads")
    parser.add_argument("--tasks", nargs="+", choices=TASKS, default=TASKS, metavar="TASK", help=f"some of: {', '.join(TASKS)}")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    parser.add_argument("--make", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--read", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.make:
        make_csv(Path(options.make[0]), int(options.make[1]), Path(options.make[2]))
        return
    if options.read:
        print(read(options.read[0], options.read[1] == "pyarrow"))
        return
    folder = data_folder(options.data)
    if folder is None or not (folder / f"{SET}.parquet").exists():
        raise SystemExit(f"benchmarks: --data must be a folder with {SET}.parquet.")
    log = Log("end_to_end", not options.no_save)
    table = Table("rows", "threads", "task", "seconds", "of processors", "peak GB", "MAE held out", title="End to end")
    for n_rows in options.rows:
        with console.status(f"{n_rows:,} rows: making the file for the first time, or finding it"):
            path = kept_csv(folder, n_rows)
        for jobs in options.jobs:
            for task in options.tasks:
                with console.status(f"{n_rows:,} rows, {jobs} threads: {task}"):
                    line = measure(task, path, n_rows, jobs)
                numbers = [f"{line['seconds']:.1f}", f"{line['processor_seconds']:.1f}", f"{line['peak_bytes'] / 1e9:.2f}"]
                table.add_row(f"{n_rows:,}", str(jobs), task, *numbers, f"{line['mae']:.4f}" if "mae" in line else "")
                log.write(**line)
    console.print(table)


if __name__ == "__main__":
    main()
