"""Pictures of the scaling lines: one file per axis, with all its series. Without matplotlib there are none."""

from pathlib import Path
from typing import Any

from lab.display import console

Lines = list[dict[str, Any]]
AXES = {
    "rows": ("rows", "rows of a set"),
    "columns": ("columns",),
    "planes": ("planes",),
    "threads": ("threads", "threads on features"),
}


def draw(lines: Lines, folder: Path) -> list[Path]:
    try:
        import matplotlib
    except ImportError:
        console.print("No pictures: matplotlib is not installed.")
        return []
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    # The same lines must give the same bytes, or every drawing would be a change to commit.
    plt.rcParams |= {"svg.hashsalt": "rankplane", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    folder.mkdir(parents=True, exist_ok=True)
    pictures = []
    for axis, kinds in AXES.items():
        mine = [line for line in lines if line["kind"] in kinds]
        if not mine:
            continue
        figure, axes = plt.subplots(figsize=(6.4, 3.8), layout="constrained")
        for line in mine:
            draw_series(axes, axis, line)
        if axis == "threads":
            most = max(max(line["x"]) for line in mine)
            axes.plot([1, most], [1, most], color="grey", linestyle=":", label="ideal")
            axes.set(xlabel="threads", ylabel="times faster than one thread", ylim=(0, None))
            axes.set_xticks(sorted({x for line in mine for x in line["x"]}))
        else:
            axes.set(xlabel=axis, ylabel="seconds, best of several", xscale="log")
            if axis == "rows":
                axes.set_yscale("log")
                plain_ticks(axes.yaxis)
            else:
                # From zero: what hardly grows should look like it.
                axes.set_ylim(0, None)
            plain_ticks(axes.xaxis)
            if axis == "planes":
                axes.set_xticks([x for x in mine[0]["x"] if x & (x - 1) == 0])
                axes.minorticks_off()
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=8)
        path = folder / f"scaling-{axis}.svg"
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)
        pictures.append(path)
    return pictures


def draw_series(axes: Any, axis: str, line: dict[str, Any]) -> None:
    label = line["data"]["name"].split("[")[0]
    if label.startswith("synthetic"):
        label = "synthetic"
    if axis == "threads":
        axes.plot(line["x"], [line["best"][0] / best for best in line["best"]], marker="o", label=label)
        return
    (drawn,) = axes.plot(line["x"], line["best"], marker="o", label=label)
    if axis == "rows":
        # What strictly proportional growth from the first point would look like.
        proportional = [line["best"][0] * x / line["x"][0] for x in line["x"]]
        axes.plot(line["x"], proportional, color=drawn.get_color(), linestyle=":", linewidth=1)


def plain_ticks(axis: Any) -> None:
    """Numbers one can read, instead of powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}" if value >= 1 else f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())
