"""How figures look. Colours are Okabe and Ito's, told apart by the colour-blind; dashes and markers tell series apart in grey."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000", "#7f7f7f", "#882255", "#999933")
DASHES = ("-", "--", "-.", ":", (0, (5, 1)), (0, (3, 1, 1, 1)), "-", "--", "-.", ":")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
STYLE = {
    "svg.hashsalt": "rankplane",  # the same lines must give the same bytes, or every drawing would be a change to commit
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 10,
    "legend.frameon": False,
    "legend.fontsize": 9,
}


def pyplot() -> Any:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    plt.rcParams |= STYLE
    return plt


def series(index: int) -> dict[str, Any]:
    """The looks of the series of that number."""
    index %= len(COLOURS)
    return {"color": COLOURS[index], "linestyle": DASHES[index], "marker": MARKERS[index], "markersize": 4.5, "linewidth": 1.5}


def column(heights: Sequence[float], width: float) -> tuple[Any, list[Any]]:
    """A figure of panels below each other, each as high as it needs to be."""
    figure, axes = pyplot().subplots(
        len(heights), 1, figsize=(width, sum(heights)), layout="constrained", squeeze=False, height_ratios=heights
    )
    return figure, list(axes.ravel())


def grid(n_panels: int, n_columns: int, width: float = 3.1, height: float = 2.6) -> tuple[Any, list[Any]]:
    """A figure of so many panels, unused places left empty."""
    n_columns = min(n_columns, n_panels)
    n_rows = -(-n_panels // n_columns)
    figure, axes = pyplot().subplots(
        n_rows, n_columns, figsize=(width * n_columns, height * n_rows), layout="constrained", squeeze=False
    )
    panels = list(axes.ravel())
    for empty in panels[n_panels:]:
        empty.set_axis_off()
    return figure, panels[:n_panels]


def save(figure: Any, folder: Path, name: str, words: str) -> str:
    """Keep a figure as SVG; the markdown that shows it."""
    folder.mkdir(parents=True, exist_ok=True)
    figure.savefig(folder / f"{name}.svg", metadata={"Date": None})
    pyplot().close(figure)
    return f"![{words}]({folder.name}/{name}.svg)\n"
