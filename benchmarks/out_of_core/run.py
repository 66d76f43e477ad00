"""Training from disk at a share of the memory against training in memory: ``python -m benchmarks.out_of_core.run``.

Each run is a process of its own, on the same two files. The reviews, and what more of them are than there are, are those of
``benchmarks.scaling.end_to_end``. What the program takes without data is measured by training on a hundred of them. The memory of
the run from disk is that, and the rest of the peak in memory divided by ``--share``, or the least that there must be.
Beside them: learners that read the file row by row, see ``benchmarks.out_of_core.streams``.
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from rich.table import Table

from benchmarks.common import Log
from benchmarks.out_of_core.streams import LEARNERS, missing
from benchmarks.scaling.end_to_end import SET, kept_csv
from lab.data import data_folder
from lab.display import console
from lab.memory import run_measured
from lab.results import n_cores
from rankplane.out_of_core.memory import LEAST, READING

TEST_SHARE = 0.1
FEW = 100  # rows


def split(path: Path) -> tuple[Path, Path]:
    """The rows of a file to train on, and to test on: every tenth."""
    import csv

    train, test = (path.with_suffix(f".{name}.csv") for name in ("train", "test"))
    if not test.exists():
        draft = test.with_suffix(".partial")
        with (
            path.open(newline="", encoding="utf-8") as file,
            train.open("w", newline="", encoding="utf-8") as first,
            draft.open("w", newline="", encoding="utf-8") as second,
        ):
            rows, writers = csv.reader(file), [csv.writer(first), csv.writer(second)]
            header = next(rows)
            for writer in writers:
                writer.writerow(header)
            for number, row in enumerate(rows):
                writers[number % round(1 / TEST_SHARE) == 0].writerow(row)
        draft.rename(test)
    return train, test


def train_command(train: Path, test: Path, jobs: int, more: list[str]) -> list[str]:
    command = [sys.executable, "-m", "rankplane", "train", str(train), "--test", str(test), "--text", "text"]
    output = ["--json", "-o", str(train.with_suffix(".rankplane"))]
    return [*command, "--target", "rating", "--jobs", str(jobs), *output, *more]


def measured(name: str, command: list[str]) -> dict[str, Any]:
    with console.status(name):
        done = run_measured(command)
    told = json.loads(done.output)
    found = {"competitor": name, "seconds": round(done.seconds, 2), "processor_seconds": round(done.processor_seconds, 2)}
    found |= {"peak_bytes": done.peak_bytes}
    if "metrics" not in told:
        return found | told
    return found | {"mae": told["metrics"]["model"]["mae"], "C": told["choices"]["C"], "columns": told["data"]["columns"]}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.out_of_core.run", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", help="folder of the data sets (default: ../shared/data if it is there)")
    parser.add_argument("--rows", nargs="+", type=int, default=[100_000])
    parser.add_argument("--share", nargs="+", type=float, default=[10.0], help="how much less memory")
    parser.add_argument("--jobs", type=int, default=n_cores(), help="number of threads")
    parser.add_argument("--no-streams", action="store_true", help="leave out the learners that read row by row")
    parser.add_argument("--no-save", action="store_true", help="do not append to the results")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if folder is None or not (folder / f"{SET}.parquet").exists():
        raise SystemExit(f"benchmarks: --data must be a folder with {SET}.parquet.")
    log = Log("out_of_core", not options.no_save)
    train, test = split(kept_csv(folder, FEW))
    bare = measured("without data", train_command(train, test, options.jobs, []))["peak_bytes"]
    table = Table("rows", "", "seconds", "of processors", "peak MB", "limit MB", "MAE", title="Out of core")
    for n_rows in options.rows:
        with console.status(f"{n_rows:,} rows: making the files for the first time, or finding them"):
            train, test = split(kept_csv(folder, n_rows))
        whole = measured("in memory", train_command(train, test, options.jobs, []))
        lines = [whole]
        for share in options.share:
            limit = int(bare + max((whole["peak_bytes"] - bare) / share, READING + LEAST))
            command = train_command(train, test, options.jobs, ["--memory", str(limit)])
            lines.append(measured("from disk", command) | {"limit": limit, "bare": bare})
        for name in [] if options.no_streams else LEARNERS:
            if reason := missing(name):
                console.print(f"{name}: left out, {reason}.")
                continue
            command = [sys.executable, "-m", "benchmarks.out_of_core.streams", name, str(train), str(test)]
            lines.append(measured(name, command))
        for line in lines:
            limit_shown = f"{line['limit'] / 1e6:.0f}" if "limit" in line else ""
            times = f"{line['seconds']:.1f}", f"{line['processor_seconds']:.1f}"
            table.add_row(
                f"{n_rows:,}", line["competitor"], *times, f"{line['peak_bytes'] / 1e6:.0f}", limit_shown, f"{line['mae']:.4f}"
            )
            log.write(rows=n_rows, bytes=train.stat().st_size, threads=options.jobs, **line)
    console.print(table)


if __name__ == "__main__":
    main()
