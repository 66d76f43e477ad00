"""Draws ``docs/scale.md`` from the result lines: ``python -m benchmarks.distributed.page``."""

import argparse
from pathlib import Path

from benchmarks.common import read_lines
from lab import ROOT
from lab.results import Line

HERE = Path(__file__).parent


def describe(line: Line) -> str:
    data = line["data"]
    return f"{data['name']}: {data['rows']:,} rows, {data['columns']:,} columns, {data['entries']:,} entries, {data['ranks']} ranks"


def newest(lines: list[Line]) -> list[Line]:
    """The last run of each data set."""
    last: dict[str, str] = {}
    for line in lines:
        last[line["data"]["name"]] = max(line["run"], last.get(line["data"]["name"], ""))
    return [line for line in lines if line["run"] == last[line["data"]["name"]]]


def rounds_section(lines: list[Line]) -> str:
    parts = ["## Rounds and bytes"]
    for name in dict.fromkeys(line["data"]["name"] for line in lines):
        own = [line for line in lines if line["data"]["name"] == name]
        alone = {line["model"]: line["mae"] for line in own if line["workers"] == 0}
        parts.append(f"\n{describe(own[0])}. Test MAE in one place {alone['one place']:.4f}.\n")
        parts.append("| workers | sweeps | rounds to a settled error | rounds in all | MB per round | gap | test MAE |")
        parts.append("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for line in own:
            if line["model"] == "NPSVOR":
                n_first = sum(phase != "final planes" for phase in line["phases"])
                parts.append(
                    f"| {line['workers']} | {line['sweeps']} | {n_first} | {len(line['phases'])} | {line['bytes'] / 1e6:.1f} | "
                    f"{line['gaps'][-1]:.2g} | {line['mae']:.4f} |"
                )
        searches = [line for line in own if line["model"] == "search"]
        found = "; ".join(f"{line['workers']} workers {len(line['phases'])} rounds, {line['mae']:.4f}" for line in searches)
        if searches:
            parts.append(f"\nSearch for C with probabilities, in one place {alone['one place, search']:.4f}: {found}.")
    parts.append(
        "\nThe final planes are fitted to all rows, until their gap is not larger than when the error had settled. MB are those\n"
        "of the changes that a worker adds to the sum: columns that several workers have, times planes, times four bytes. Of m\n"
        "workers, each sends and receives 2 (m - 1) / m times as much.\n"
    )
    return "\n".join(parts)


def memory_section(lines: list[Line]) -> str:
    """From disk against in memory; nothing before it was measured."""
    if not lines:
        return ""
    last = max(line["run"] for line in lines)
    rows = ["## From disk and in memory", "", "| rows | | seconds | of processors | peak MB | limit MB | test MAE |"]
    rows.append("| ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    for line in lines:
        if line["run"] == last:
            limit = f"{line['limit'] / 1e6:,.0f}" if "limit" in line else ""
            rows.append(
                f"| {line['rows']:,} | {line['competitor']} | {line['seconds']:.1f} | {line['processor_seconds']:.1f} | "
                f"{line['peak_bytes'] / 1e6:,.0f} | {limit} | {line['mae']:.4f} |"
            )
    bare = max(line.get("bare", 0) for line in lines if line["run"] == last)
    closing = (
        "Reviews of hotels, beyond 250,000 with their words shuffled; `python -m benchmarks.out_of_core.run`. The limit is\n"
        f"what the program takes without data, {bare / 1e6:,.0f} MB, and a tenth of the rest of the peak in memory, or 46 MB\n"
        "where that is less. SGDClassifier and Vowpal Wabbit go through the file three times, with words and pairs of words\n"
        "hashed to 22 bits, and are not tuned."
    )
    return "\n".join([*rows, "", closing, ""])


def outlook(lines: list[Line], fits: list[Line]) -> str:
    """100 million and a billion reviews, from what was measured."""
    search = max((line for line in lines if line["model"] == "search"), key=lambda line: line["workers"])
    n_rounds, planes = len(search["phases"]), 5
    timed = [
        line for line in fits if line.get("competitor") == "rankplane NPSVOR, 1 thread" and "largemovie" in line["data"]["name"]
    ]
    fit = timed[-1]
    per_entry = fit["best"] / (fit["data"]["entries"] * sum(fit["answer"]["sweeps"]) / len(fit["answer"]["sweeps"]))
    columns, entries, sweeps, speed = 4_000_000, 130, 5, 1.25e9
    rows = ["| reviews | machines | rows each | sweeps, one thread | traffic, each way | on the wire | in all |"]
    rows.append("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for n_rows in (100_000_000, 1_000_000_000):
        for machines in (10, 30, 100):
            each = n_rows / machines
            # A sweep of the certificate beside those of the round.
            seconds = each * entries * per_entry * (sweeps + 1) * n_rounds
            n_bytes = 2 * (machines - 1) / machines * columns * planes * 4 * n_rounds
            wire = n_bytes / speed
            rows.append(
                f"| {n_rows:,} | {machines} | {each:,.0f} | {seconds / 60:,.0f} min | {n_bytes / 1e9:.1f} GB | {wire:.0f} s | "
                f"{(seconds + wire) / 60:,.0f} min |"
            )
    shown = {
        "columns": columns // 10**6,
        "rounds": n_rounds,
        "sweeps": sweeps,
        "workers": search["workers"],
        "nanoseconds": f"{per_entry * 1e9:.1f}",
        "data": fit["data"]["name"],
        "bytes_of_duals": planes * 4 * 3,
        "weights": columns * planes * 4 * 5 // 10**6,
        "table": "\n".join(rows),
    }
    return (HERE / "outlook.md").read_text(encoding="utf-8").format(**shown)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="benchmarks.distributed.page", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder to write to")
    folder = parser.parse_args(arguments).out
    lines = newest(read_lines("rounds"))
    opening, method = ((HERE / name).read_text(encoding="utf-8") for name in ("opening.md", "method.md"))
    from_disk = memory_section(read_lines("out_of_core"))
    page = "\n".join([opening, from_disk, rounds_section(lines), method, outlook(lines, read_lines("fit"))])
    (folder / "scale.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
