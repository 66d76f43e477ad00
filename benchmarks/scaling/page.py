"""How times and memory grow with threads and data."""

from pathlib import Path

from benchmarks.common import read_lines
from benchmarks.goals import Goal
from benchmarks.layout import newest, origin
from benchmarks.scaling import goals, plots
from benchmarks.scaling.series import LOG, label
from lab.results import Line
from lab.tables import number, table

INTRODUCTION = """## Scaling

`python -m benchmarks.scaling.threads`, `.sizes` and `.vectorize`; NPSVOR at the paper's tolerance. *fit* has C = 1, *search* is
`CSearchCV` with probabilities, *committee* that of a Committee with column weights, *fit transform* turns texts into a matrix,
*hashing* is arithmetic without memory: what the processor itself gains. Points take turns, best of several; *MAE* shows that
answers agree.
"""
ROW_KINDS = {"rows": "Rows", "columns": "Columns", "planes": "Planes"}
END_TO_END = """### From a csv file to a model

`python -m benchmarks.scaling.end_to_end`: each step is a process of its own. There are 250,000 reviews of hotels; more rows are
the same ones with the words of each sentence in another order, which is for time and memory only: their MAE says nothing about
reviews.
"""


def lines_of_series() -> list[Line]:
    runs = newest(read_lines(LOG), lambda line: (line["kind"], line["task"], line["data"]["name"], line["machine"]["cores"]))
    return [run[-1] for run in runs]


def end_to_end_lines() -> list[Line]:
    runs = newest(read_lines("end_to_end"), lambda line: (line["task"], line["rows"], line["threads"], line["machine"]["cores"]))
    return [run[-1] for run in runs]


def held() -> list[Goal]:
    of_series = [goal for line in lines_of_series() for goal in goals.series_goals(line)]
    return of_series + [goal for line in end_to_end_lines() for goal in goals.whole_goals(line)]


def section(folder: Path) -> str:
    lines = lines_of_series()
    if not lines and not end_to_end_lines():
        return ""
    pictures = plots.draw(lines, folder / "figures" / "benchmarks") if lines else []
    parts = [INTRODUCTION]
    parts += [f"![{caption(path)}]({path.relative_to(folder)})\n" for path in pictures]
    parts.append(threads_table([line for line in lines if line["kind"].startswith("threads")]))
    parts.append(order_table([line for line in lines if line["kind"] == "columns of a row"]))
    parts += [size_table(line) for line in lines if line["kind"] in ROW_KINDS]
    parts.append(end_to_end_table(end_to_end_lines()))
    return "\n".join(filter(None, parts))


def caption(path: Path) -> str:
    axis = path.stem.split("-")[-1]
    return "How many times faster with more threads" if axis == "threads" else f"Seconds against {axis}"


def threads_table(lines: list[Line]) -> str:
    rows = [
        (
            line["task"].replace("_", " "),
            line["data"]["name"],
            line["kind"].removeprefix("threads").removeprefix(", ") or "idle",
            str(x),
            number(best),
            number(line["best"][0] / best, 2),
            number(line["mae"][i]) if "mae" in line else "",
        )
        for line in lines
        for i, (x, best) in enumerate(zip(line["x"], line["best"], strict=True))
    ]
    head = ("task", "data", "machine", "threads", "seconds", "times faster than one", "MAE")
    return f"### Threads\n\n{origin(lines[-1])}.\n\n{table(head, rows, left=3)}" if rows else ""


def order_table(lines: list[Line]) -> str:
    rows = [
        (line["data"]["name"], *(number(best) for best in line["best"]), number(line["best"][1] / line["best"][0], 2))
        for line in lines
    ]
    head = ("data", "columns of a row sorted, seconds", "in random order", "ratio")
    return f"### Order of columns\n\nA fit on two threads.\n\n{table(head, rows)}" if rows else ""


def size_table(line: Line) -> str:
    kind = line["kind"]
    columns = {
        "relative to the first": [best / line["best"][0] for best in line["best"]],
        "us per row": line.get("us_per_row"),
        "sweeps": line.get("sweeps"),
        "ns per entry and sweep": line.get("ns_per_entry_and_sweep"),
    }
    if "needed" in line:
        columns |= {"MB beyond X": megabytes(line["peak"])}
        columns |= {"over W, duals and indices": [a / b for a, b in zip(line["peak"], line["needed"], strict=True)]}
    if "text_bytes" in line:
        columns |= {"MB of text": megabytes(line["text_bytes"]), "MB of matrix": megabytes(line["result_bytes"])}
        columns |= {"peak MB": megabytes(line["peak"]), "peak over text and matrix": line["peak_over_text_and_result"]}
    shown = {name: values for name, values in columns.items() if values is not None}
    rows = [(label(x), number(line["best"][i]), *(cell(values[i]) for values in shown.values())) for i, x in enumerate(line["x"])]
    where = f"{line['task'].replace('_', ' ')}, {line['data']['name']}"
    threads = f", {line['n_threads']} threads" if "n_threads" in line else ""
    return f"### {ROW_KINDS[kind]}: {where}\n\n{origin(line)}{threads}.\n\n{table((kind, 'seconds', *shown), rows, left=0)}"


def megabytes(sizes: list[int]) -> list[int]:
    return [round(size / 1e6) for size in sizes]


def cell(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else number(value, 2)


def end_to_end_table(lines: list[Line]) -> str:
    rows = [
        (
            line["task"],
            f"{line['rows']:,}",
            str(line["threads"]),
            number(line["bytes"] / 1e9, 2),
            number(line["seconds"], 1),
            number(line["processor_seconds"], 1),
            number(line["peak_bytes"] / 1e9, 2),
            number(line.get("mae"), 4),
            f"{line['C']:g}" if "C" in line else "",
        )
        for line in sorted(lines, key=lambda line: (line["rows"], line["threads"]))
    ]
    head = ("step", "rows", "threads", "GB of csv", "seconds", "of processors", "peak GB", "MAE held out", "C")
    return f"{END_TO_END}\n{origin(lines[-1])}.\n\n{table(head, rows)}" if rows else ""
