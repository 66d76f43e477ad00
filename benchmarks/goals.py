"""The ratios that the package means to hold: each task computes its own from result lines, so that the console and the docs cannot
differ.
"""

from dataclasses import dataclass

from lab.tables import number, table


@dataclass(frozen=True)
class Goal:
    """A ratio of two best times (or sizes), and the bound it is held to; None where it is only reported."""

    what: str
    data: str
    ratio: float
    bound: float | None
    is_upper: bool = False
    spread: str = ""  # the range of the ratio within single rounds

    @property
    def is_held(self) -> bool:
        return self.bound is None or (self.ratio <= self.bound if self.is_upper else self.ratio >= self.bound)

    @property
    def rule(self) -> str:
        return "" if self.bound is None else f"{'at most' if self.is_upper else 'at least'} {self.bound:g}"

    @property
    def verdict(self) -> str:
        return "" if self.bound is None else f"{'yes' if self.is_held else 'no'} ({self.rule})"


def spread(over: list[float], under: list[float]) -> str:
    ratios = [a / b for a, b in zip(over, under, strict=False)]
    return f"{min(ratios):.1f} to {max(ratios):.1f}" if len(ratios) > 1 else ""


def name_of(threads: int) -> str:
    return "1 thread" if threads == 1 else f"{threads} threads"


def goal_section(found: list[Goal]) -> str:
    rows = [(g.what, g.data, g.verdict, number(g.ratio, 2), g.spread) for g in found if g.bound is not None]
    if not rows:
        return ""
    head = ("ratio of best times, or of sizes", "data", "reached?", "measured", "by rounds")
    return "## Goals\n\n" + table(head, rows, left=3)
