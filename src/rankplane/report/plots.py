"""Plots as inline SVG: no scripts, no files, colours from the style sheet of the page."""

import math
from collections.abc import Sequence
from html import escape

# About the width of a phone, so that text is not scaled down there.
WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 66, 22, 16, 46
LETTER, BOLD = 7, 8.5  # about the width of one


def ticks(low: float, high: float, n_wanted: int = 5) -> list[float]:
    """Round numbers from about low to about high."""
    if not high > low:
        high = low + 1
    rough = (high - low) / n_wanted
    power = 10.0 ** math.floor(math.log10(rough))
    step = next(factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough * (1 - 1e-9))
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [number * step for number in range(first, last + 1)]


class Axes:
    """Positions of values in the picture, and the frame around it."""

    def __init__(self, x: tuple[float, float], y: tuple[float, float]) -> None:
        self.x_low, self.x_high = x
        self.y_low, self.y_high = y

    def x(self, value: float) -> float:
        return LEFT + (value - self.x_low) / (self.x_high - self.x_low) * (WIDTH - LEFT - RIGHT)

    def y(self, value: float) -> float:
        return HEIGHT - BOTTOM - (value - self.y_low) / (self.y_high - self.y_low) * (HEIGHT - TOP - BOTTOM)

    def frame(self, x_ticks: Sequence[tuple[float, str]], y_ticks: Sequence[tuple[float, str]], x_label: str, y_label: str) -> str:
        parts = []
        for value, name in y_ticks:
            parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{self.y(value):.1f}" y2="{self.y(value):.1f}"/>')
            parts.append(f'<text x="{LEFT - 8}" y="{self.y(value) + 4:.1f}" text-anchor="end">{escape(name)}</text>')
        room = (WIDTH - LEFT - RIGHT) / max(len(x_ticks), 1) / LETTER
        for value, name in x_ticks:
            # Long names are truncated, and shown in full as tooltips.
            shown = name if len(name) <= room else name[: max(int(room) - 1, 1)] + "…"
            words = f"{escape(shown)}<title>{escape(name)}</title>"
            parts.append(f'<text x="{self.x(value):.1f}" y="{HEIGHT - BOTTOM + 18}" text-anchor="middle">{words}</text>')
        middle = (TOP + HEIGHT - BOTTOM) / 2
        parts.append(f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{escape(x_label)}</text>')
        parts.append(f'<text transform="translate(13 {middle}) rotate(-90)" text-anchor="middle">{escape(y_label)}</text>')
        return "".join(parts)


def picture(title: str, content: str, height: float = HEIGHT) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(title, quote=True)}">{content}</svg>'


def dot(x: float, y: float, radius: float, hint: str, kind: str = "dot") -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(hint)}</title></circle>'


def curve(points: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def curve_over_c(
    Cs: Sequence[float], errors: Sequence[float], best: float, y_label: str, spread: Sequence[float] | None = None
) -> str:
    """Error against C on a logarithmic axis, with the standard error over the folds as error bars."""
    places = [math.log2(C) for C in Cs]
    around = [0.0] * len(Cs) if spread is None else list(spread)
    lows = [error - bar for error, bar in zip(errors, around, strict=True)]
    highs = [error + bar for error, bar in zip(errors, around, strict=True)]
    y_ticks = ticks(min(lows), max(highs))
    axes = Axes((min(places) - 0.3, max(places) + 0.3), (y_ticks[0], y_ticks[-1]))
    every = -(-len(Cs) // 7)
    names = [(place, f"{C:.2g}") for number, (place, C) in enumerate(zip(places, Cs, strict=True)) if number % every == 0]
    points = [(axes.x(place), axes.y(error)) for place, error in zip(places, errors, strict=True)]
    content = axes.frame(names, [(tick, f"{tick:.4g}") for tick in y_ticks], "C", y_label)
    if spread is not None:
        content += "".join(error_bar(x, axes.y(low), axes.y(high)) for (x, _), low, high in zip(points, lows, highs, strict=True))
    content += curve(points)
    for (x, y), C, error, bar in zip(points, Cs, errors, around, strict=True):
        is_best = best == C
        hint = f"C = {C:g}: {error:.4f}" + (f" ± {bar:.4f}" if spread is not None else "")
        content += dot(x, y, 7 if is_best else 4, hint, "best" if is_best else "dot")
    return picture(f"{y_label} by C; the best is C = {best:g}", content)


def error_bar(x: float, low: float, high: float) -> str:
    return f'<path class="spread" d="M{x - 4:.1f} {low:.1f}h8m-4 0V{high:.1f}m-4 0h8"/>'


def reliability(points: Sequence[tuple[float, float, int]]) -> str:
    """Predicted probabilities against observed shares, ``(predicted, observed, count)``."""
    axes = Axes((0, 1), (0, 1))
    marks = [(tick / 5, f"{tick * 20} %") for tick in range(6)]
    content = axes.frame(marks, marks, "predicted probability", "observed share")
    content += f'<line class="ideal" x1="{axes.x(0)}" y1="{axes.y(0)}" x2="{axes.x(1)}" y2="{axes.y(1)}"/>'
    most = max((count for *_, count in points), default=1)
    content += curve([(axes.x(predicted), axes.y(observed)) for predicted, observed, _ in points])
    for predicted, observed, count in points:
        hint = f"predicted {predicted:.1%}, observed {observed:.1%}, {count:,} cases"
        content += dot(axes.x(predicted), axes.y(observed), 3 + 5 * math.sqrt(count / most), hint)
    said = "; ".join(f"predicted {predicted:.0%}, observed {observed:.0%}" for predicted, observed, _ in points)
    return picture(f"Reliability of the probabilities. {said}", content)


BAR, GAP = 13, 10


def shares(names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """Horizontal bars: per name a group of one bar per series, as long as the share of the name in the series."""
    left = round(min(LEFT + 40, max(24, 12 + BOLD * max(map(len, names)))))
    room, top = WIDTH - left - 52, 30
    most = max(max(values) for _, values in series) or 1.0
    content, x = "", left
    for number, (title, _) in enumerate(series):
        content += f'<rect class="series{number}" x="{x}" y="4" width="12" height="12"/>'
        content += f'<text x="{x + 17}" y="14">{escape(title)}</text>'
        x += 36 + LETTER * len(title)
    y = top
    for place, name in enumerate(names):
        n_letters = int((left - 12) / BOLD)
        shown = name if len(name) <= n_letters else name[: n_letters - 1] + "…"
        middle = y + BAR * len(series) / 2 + 4
        words = f"{escape(shown)}<title>{escape(name)}</title>"
        content += f'<text class="name" x="{left - 8}" y="{middle:.1f}" text-anchor="end">{words}</text>'
        for number, (title, values) in enumerate(series):
            width = room * values[place] / most
            hint = f"<title>{escape(name)}, {escape(title)}: {values[place]:.1%}</title>"
            content += (
                f'<rect class="series{number}" x="{left}" y="{y + 1}" width="{max(width, 1):.1f}" height="{BAR - 2}">{hint}</rect>'
            )
            content += f'<text class="small" x="{left + width + 5:.1f}" y="{y + BAR - 3}">{100 * values[place]:.1f} %</text>'
            y += BAR
        y += GAP
    said = "; ".join(
        f"rank {name}: " + ", ".join(f"{title} {values[place]:.1%}" for title, values in series) for place, name in enumerate(names)
    )
    return picture(f"How often each rank occurs. {said}", content, y)
