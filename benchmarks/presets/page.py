"""Features and model chosen by measurement, against each single preset."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.layout import newest_of_set, origin
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Features chosen by measurement

MAE on test rows of `--preset auto`, the default of the command line, and of single presets, fitted to the same rows (`python -m
benchmarks.presets.run`). Single presets have the model Committee with column weights; *auto* chooses the model, too. It never sees
the test rows. *off by* is how much worse auto is than the best single preset, and the standard error of that difference; the best
preset is known only afterwards. CPU seconds of auto include its choice.
"""


def section(folder: Path) -> str:
    runs = newest_of_set(read_lines("presets"))
    if not runs:
        return ""
    return "\n".join([INTRODUCTION, f"{origin(runs[-1][-1])}.\n", errors_table(runs), costs_table(runs)])


def errors_table(runs: list[list[Line]]) -> str:
    names = list(dict.fromkeys(line["preset"] for lines in runs for line in lines))
    rows = []
    for lines in runs:
        found = {line["preset"]: line for line in lines}
        least = min(line["measures"]["mae"] for line in lines)
        cells = []
        for name in names:
            mae = found[name]["measures"]["mae"] if name in found else None
            cells.append(f"**{number(mae)}**" if mae == least else number(mae))
        best = max(lines, key=lambda line: line["auto_worse_by"])
        about = lines[0]["data"]
        off = f"{best['auto_worse_by']:+.3f} ±{best['noise']:.3f}"
        rows.append([f"{about['name']}, {about['rows']:,} rows", *cells, off])
    return table(["set", *names, "off by"], rows)


def costs_table(runs: list[list[Line]]) -> str:
    rows = []
    for lines in runs:
        found = {line["preset"]: line for line in lines}
        chosen, plain = found["auto"], found["words 1-2"]
        said = chosen["chosen"].get("model") or chosen["chosen"].get("features") or "too few rows to choose"
        dearest = max(line["cpu_seconds"] for name, line in found.items() if name != "auto")
        rows.append([lines[0]["data"]["name"], said, *(f"{s:.0f}" for s in (chosen["cpu_seconds"], plain["cpu_seconds"], dearest))])
    return table(["set", "chosen", "CPU seconds of auto", "of words 1-2", "of the most expensive preset"], rows, left=2)
