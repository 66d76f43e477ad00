"""Do methods differ over data sets? Friedman's and Nemenyi's tests, and diagrams of critical differences.

The Friedman test asks whether the methods' ranks differ at all; by the Nemenyi test two methods differ when their average ranks
are a critical difference apart (Demsar, *Statistical comparisons of classifiers over multiple data sets*, 2006).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from lab import drawing

LEVEL = 0.95
TOP, BAR = 1.6, 0.26  # room above the line of ranks, and for each bar below it


def average_ranks(errors: NDArray[np.float64]) -> NDArray[np.float64]:
    """1 is the smallest error; equal errors share their ranks."""
    return np.asarray(stats.rankdata(errors, axis=1).mean(axis=0))


@dataclass(frozen=True)
class Verdict:
    """Friedman's test, and the distance of average ranks from which two methods differ."""

    ranks: NDArray[np.float64]
    p_value: float
    critical_difference: float
    n_sets: int


def compare(errors: NDArray[np.float64]) -> Verdict:
    n_sets, n_methods = errors.shape
    ranks = average_ranks(errors)
    if n_methods < 3:
        p_value = float(stats.wilcoxon(errors[:, 0], errors[:, 1]).pvalue)
    else:
        p_value = iman_davenport(float(stats.friedmanchisquare(*errors.T).statistic), n_sets, n_methods)
    return Verdict(ranks, p_value, critical_difference(n_methods, n_sets), n_sets)


def iman_davenport(chi_square: float, n_sets: int, n_methods: int) -> float:
    """The p-value of their F, made of Friedman's chi-square, which is too cautious by itself."""
    rest = n_sets * (n_methods - 1) - chi_square
    if rest <= 1e-9:
        return 0.0
    return float(stats.f.sf((n_sets - 1) * chi_square / rest, n_methods - 1, (n_methods - 1) * (n_sets - 1)))


def critical_difference(n_methods: int, n_sets: int) -> float:
    quantile = stats.studentized_range.ppf(LEVEL, n_methods, np.inf) / np.sqrt(2)
    return float(quantile * np.sqrt(n_methods * (n_methods + 1) / (6 * n_sets)))


def cliques(ranks: Sequence[float], critical: float) -> list[tuple[int, int]]:
    """Runs of methods, in the order of their ranks, no two of which differ; only those not inside another."""
    ordered = sorted(ranks)
    found: list[tuple[int, int]] = []
    for first in range(len(ordered)):
        last = max(i for i in range(first, len(ordered)) if ordered[i] - ordered[first] <= critical)
        if last > first and not any(a <= first and last <= b for a, b in found):
            found.append((first, last))
    return found


def depth(verdict: Verdict) -> float:
    """How far below the line of ranks the bars and names of a diagram reach, in lines of about half a name."""
    n_bars = len(cliques(list(verdict.ranks), verdict.critical_difference))
    return 0.9 + BAR * n_bars + 0.55 * -(-len(verdict.ranks) // 2)


def draw(axes: Any, methods: Sequence[str], verdict: Verdict) -> None:
    """Average ranks on a line, names to either side, bars over methods that do not differ."""
    n = len(methods)
    order = np.argsort(verdict.ranks, kind="stable")
    ranks = verdict.ranks[order]
    bars = cliques(list(ranks), verdict.critical_difference)
    n_left = -(-n // 2)
    drop = BAR * len(bars)
    axes.set(xlim=(1 - 0.35 * n, n + 0.35 * n), ylim=(-depth(verdict), TOP))
    axes.set_axis_off()
    axes.plot([1, n], [0, 0], color="black", linewidth=1)
    for tick in range(1, n + 1):
        axes.plot([tick, tick], [0, 0.18], color="black", linewidth=1)
        axes.text(tick, 0.3, str(tick), ha="center", va="bottom", fontsize=9)
    axes.plot([1, 1 + verdict.critical_difference], [1.15, 1.15], color="black", linewidth=2)
    axes.text(1 + verdict.critical_difference + 0.05, 1.15, f"CD = {verdict.critical_difference:.2f}", va="center", fontsize=9)
    for i, rank in enumerate(ranks):
        is_left = i < n_left
        level = -0.55 - drop - 0.55 * (i if is_left else n - 1 - i)
        end = 1 - 0.1 * n if is_left else n + 0.1 * n
        axes.plot([rank, rank, end], [0, level, level], color="black", linewidth=0.8)
        name = f"{methods[order[i]]} ({rank:.2f})"
        axes.text(end + (-0.04 if is_left else 0.04), level, name, ha="right" if is_left else "left", va="center", fontsize=9)
    for i, (first, last) in enumerate(bars):
        y = -0.2 - BAR * i
        axes.plot([ranks[first] - 0.05, ranks[last] + 0.05], [y, y], color=drawing.COLOURS[0], linewidth=4, solid_capstyle="round")
