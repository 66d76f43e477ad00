"""Plots as inline SVG: no script, no file, colours from the page around them."""

import math
from collections.abc import Sequence
from html import escape

# About as wide as a phone, so that letters keep their size there.
WIDTH, HEIGHT = 440, 280
LEFT, RIGHT, TOP, BOTTOM = 66, 22, 16, 46
LETTER = 7  # about the width of one


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


def picture(title: str, content: str) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{escape(title, quote=True)}">{content}</svg>'


def dot(x: float, y: float, radius: float, hint: str, kind: str = "dot") -> str:
    return f'<circle class="{kind}" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}"><title>{escape(hint)}</title></circle>'


def curve(points: Sequence[tuple[float, float]]) -> str:
    return f'<polyline class="curve" points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in points)}"/>'


def price_curve(prices: Sequence[float], errors: Sequence[float], best: float, y_label: str) -> str:
    """Error by C, which is spaced by powers of two."""
    places = [math.log2(price) for price in prices]
    y_ticks = ticks(min(errors), max(errors))
    low, high = min(places), max(places)
    axes = Axes((low - 0.3, high + 0.3), (y_ticks[0], y_ticks[-1]))
    every = -(-len(prices) // 7)
    names = [
        (place, f"{price:.2g}") for number, (place, price) in enumerate(zip(places, prices, strict=True)) if number % every == 0
    ]
    points = [(axes.x(place), axes.y(error)) for place, error in zip(places, errors, strict=True)]
    content = axes.frame(names, [(tick, f"{tick:.4g}") for tick in y_ticks], "C", y_label) + curve(points)
    for (x, y), price, error in zip(points, prices, errors, strict=True):
        is_best = price == best
        content += dot(x, y, 7 if is_best else 4, f"C = {price:g}: {error:.4f}", "best" if is_best else "dot")
    return picture("Error by C", content)


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
    return picture("Reliability of the probabilities", content)


def bars(names: Sequence[str], values: Sequence[float], x_label: str, y_label: str, digits: int = 2) -> str:
    """A bar per name, from zero up."""
    y_ticks = ticks(0, max([*values, 1e-9]))
    axes = Axes((-0.5, len(names) - 0.5), (0, y_ticks[-1]))
    x_ticks = [(place, name) for place, name in enumerate(names)]
    content = axes.frame(
        x_ticks, [(tick, f"{tick:,.4g}" if tick < 10_000 else f"{tick:,.0f}") for tick in y_ticks], x_label, y_label
    )
    for place, (name, value) in enumerate(zip(names, values, strict=True)):
        left, right, top = axes.x(place - 0.35), axes.x(place + 0.35), axes.y(value)
        hint = f"<title>{escape(name)}: {value:,.{digits}f}</title>"
        shape = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{axes.y(0) - top:.1f}"'
        content += f'<rect class="bar" {shape}>{hint}</rect>'
        content += f'<text x="{(left + right) / 2:.1f}" y="{top - 4:.1f}" text-anchor="middle">{value:,.{digits}f}</text>'
    return picture(f"{y_label} by {x_label}", content)
