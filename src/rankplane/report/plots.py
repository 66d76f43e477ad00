"""Plots as inline SVG: no script, no file, colours from the page around them."""

import math
from collections.abc import Sequence
from html import escape

# About as wide as a phone, so that letters keep their size there.
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
    """Where values lie in the picture, and the frame around it."""

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
            # Names too long for their place are cut, and whole on pointing at them.
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


def price_curve(
    prices: Sequence[float], errors: Sequence[float], best: float, y_label: str, spread: Sequence[float] | None = None
) -> str:
    """Error by C, which is spaced by powers of two, with the standard error over the folds as bars."""
    places = [math.log2(price) for price in prices]
    around = [0.0] * len(prices) if spread is None else list(spread)
    lows = [error - bar for error, bar in zip(errors, around, strict=True)]
    highs = [error + bar for error, bar in zip(errors, around, strict=True)]
    y_ticks = ticks(min(lows), max(highs))
    axes = Axes((min(places) - 0.3, max(places) + 0.3), (y_ticks[0], y_ticks[-1]))
    every = -(-len(prices) // 7)
    names = [
        (place, f"{price:.2g}") for number, (place, price) in enumerate(zip(places, prices, strict=True)) if number % every == 0
    ]
    points = [(axes.x(place), axes.y(error)) for place, error in zip(places, errors, strict=True)]
    content = axes.frame(names, [(tick, f"{tick:.4g}") for tick in y_ticks], "C", y_label)
    if spread is not None:
        content += "".join(error_bar(x, axes.y(low), axes.y(high)) for (x, _), low, high in zip(points, lows, highs, strict=True))
    content += curve(points)
    for (x, y), price, error, bar in zip(points, prices, errors, around, strict=True):
        is_best = price == best
        hint = f"C = {price:g}: {error:.4f}" + (f" ± {bar:.4f}" if spread is not None else "")
        content += dot(x, y, 7 if is_best else 4, hint, "best" if is_best else "dot")
    return picture(f"{y_label} by C; the best is C = {best:g}", content)


def error_bar(x: float, low: float, high: float) -> str:
    return f'<path class="spread" d="M{x - 4:.1f} {low:.1f}h8m-4 0V{high:.1f}m-4 0h8"/>'


def reliability(points: Sequence[tuple[float, float, int]]) -> str:
    """Promised against observed shares, ``(promised, observed, count)``; on the diagonal, promises are kept."""
    axes = Axes((0, 1), (0, 1))
    marks = [(tick / 5, f"{tick * 20} %") for tick in range(6)]
    content = axes.frame(marks, marks, "promised probability", "observed share")
    content += f'<line class="ideal" x1="{axes.x(0)}" y1="{axes.y(0)}" x2="{axes.x(1)}" y2="{axes.y(1)}"/>'
    most = max((count for *_, count in points), default=1)
    content += curve([(axes.x(promised), axes.y(observed)) for promised, observed, _ in points])
    for promised, observed, count in points:
        hint = f"promised {promised:.1%}, observed {observed:.1%}, {count:,} cases"
        content += dot(axes.x(promised), axes.y(observed), 3 + 5 * math.sqrt(count / most), hint)
    said = "; ".join(f"promised {promised:.0%}, observed {observed:.0%}" for promised, observed, _ in points)
    return picture(f"Reliability of the probabilities. {said}", content)


BAR, GAP = 13, 10


def shares(names: Sequence[str], series: Sequence[tuple[str, Sequence[float]]]) -> str:
    """A group of lying bars per name, one per series: how much of the whole each name has there."""
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
