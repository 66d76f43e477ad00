"""Pictures of series: one file per axis. Without matplotlib there are none."""

from pathlib import Path
from typing import Any

from lab.display import console
from lab.results import Line

AXES = ("threads", "rows", "columns", "planes")
COLOURS = ("#2166ac", "#b2182b", "#1b7837", "#762a83", "#e08214", "#35978f", "#878787")


def draw(lines: list[Line], folder: Path) -> list[Path]:
    """Speed-up over threads; seconds over all other axes, with dotted lines that grow in proportion."""
    try:
        import matplotlib
    except ImportError:
        console.print("No pictures: matplotlib is not installed.")
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    # The same lines must give the same bytes, or every drawing would be a change to commit.
    settings = {"svg.hashsalt": "rankplane", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    with plt.rc_context(settings):
        for axis in AXES:
            mine = [line for line in lines if line["kind"] == axis]
            if not mine:
                continue
            figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
            (draw_speedups if axis == "threads" else draw_seconds)(axes, axis, mine)
            axes.grid(alpha=0.3)
            axes.legend(frameon=False, fontsize=8)
            path = folder / f"scaling-{axis}.svg"
            figure.savefig(path, metadata={"Date": None})
            plt.close(figure)
            pictures.append(path)
    return pictures


def draw_speedups(axes: Any, axis: str, lines: list[Line]) -> None:
    for colour, line in zip(COLOURS * len(lines), lines, strict=False):
        label = f"{line['task'].replace('_', ' ')}, {short_name(line)}"
        axes.plot(line["x"], [line["best"][0] / best for best in line["best"]], marker="o", color=colour, label=label)
    ticks = sorted({x for line in lines for x in line["x"]})
    axes.plot(ticks, [x / ticks[0] for x in ticks], color="grey", linestyle=":", label="ideal")
    axes.set(xlabel=axis, ylabel="times faster than one thread", ylim=(0, None), xticks=ticks)


def draw_seconds(axes: Any, axis: str, lines: list[Line]) -> None:
    for colour, line in zip(COLOURS * len(lines), lines, strict=False):
        axes.plot(line["x"], line["best"], marker="o", color=colour, label=f"{line['task'].replace('_', ' ')}, {short_name(line)}")
        if axis == "rows":
            # What strictly proportional growth from the first point would look like.
            axes.plot(line["x"], [line["best"][0] * x / line["x"][0] for x in line["x"]], color=colour, linestyle=":", linewidth=1)
    axes.set(xlabel=axis, ylabel="seconds, best of several", xscale="log")
    if axis == "rows":
        axes.set_yscale("log")
        plain_ticks(axes.yaxis)
    else:
        axes.set_ylim(0, None)  # so that slow growth looks slow
    plain_ticks(axes.xaxis)
    if axis == "planes":
        axes.set_xticks([x for x in lines[0]["x"] if x & (x - 1) == 0])
        axes.minorticks_off()


def short_name(line: Line) -> str:
    name = str(line["data"]["name"])
    return "synthetic" if name.startswith("synthetic") else name


def plain_ticks(axis: Any) -> None:
    """Plain numbers instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
