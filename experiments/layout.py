"""Words and tables of the page."""

from collections.abc import Iterable, Mapping, Sequence
from math import log2

from experiments.sets import PAPER_NAMES, TEXT_SETS, TITLES, WITH_COPIES
from experiments.summaries import Place, Sample, Samples, complete, errors_of, table_of
from lab.significance import average_ranks
from lab.tables import number, table

ORDER = ("treebank_features", *TEXT_SETS)
WHY_DIFFERENT = {
    "treebank_features": "nothing: same matrix, same rows",
    "treebank": "features and splits; same texts",
    "moviereview": "features and splits; same texts",
    "largemovie": "features and splits; same texts",
    "tripadvisor": "sample of the reviews (ours has no copies), features",
} | dict.fromkeys(WITH_COPIES, "sample of the reviews and its copies, features")
SPLITS = {"plain": "plain", "review": "by review", "given": "the paper's"}


def cell(sample: Sample | None, is_best: bool = False) -> str:
    """Mean, half-width of its interval; the best in bold."""
    if sample is None:
        return ""
    mean = f"**{sample.mean:.3f}**" if is_best else f"{sample.mean:.3f}"
    return mean if sample.half_width is None else f"{mean} ± {sample.half_width:.3f}"


def best_of(values: Sequence[float | None]) -> float | None:
    known = [round(value, 3) for value in values if value is not None]
    return min(known, default=None)


def place_name(place: Place) -> tuple[str, str]:
    return TITLES.get(place[0], place[0]), SPLITS.get(place[1], place[1])


def join(words: Sequence[str]) -> str:
    """In a sentence: a, b and c."""
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else "none"


def power(C: float) -> str:
    """2^-3 rather than 0.125."""
    exponent = log2(C)
    return f"2^{exponent:.0f}" if exponent == round(exponent) else f"{C:g}"


def measure_table(
    samples: Samples,
    places: Sequence[Place],
    methods: Sequence[str],
    published: dict[str, dict[str, float]],
) -> str:
    """Errors by place and method, each data set's published figures above ours; the best of a row in bold."""
    rows: list[Sequence[str]] = []
    shown: str | None = None
    for place in places:
        title, split = place_name(place)
        in_paper = published.get(PAPER_NAMES.get(place[0], ""))
        if in_paper is not None and place[0] != shown:
            values = [in_paper.get(method) for method in methods]
            best = best_of(values)
            cells = [f"**{v:.3f}**" if v is not None and round(v, 3) == best else number(v) for v in values]
            rows.append((title, "in the paper", *cells))
        shown = place[0]
        found = [samples[place].get(method) for method in methods]
        best = best_of([None if sample is None else sample.mean for sample in found])
        cells = [cell(sample, sample is not None and round(sample.mean, 3) == best) for sample in found]
        rows.append((title, split, *cells))
    return table(("data", "split", *methods), rows, left=2)


def against_paper(
    samples: Samples,
    places: Sequence[Place],
    methods: Sequence[str],
    published: dict[str, dict[str, float]],
) -> str:
    """Our error over the paper's in every cell that both have, on splits as the paper's, and why they may differ."""
    rows = []
    for place in places:
        in_paper = published.get(PAPER_NAMES.get(place[0], ""), {})
        if place[1] == "review" or not in_paper:
            continue
        changes = [
            f"{100 * (samples[place][m].mean / in_paper[m] - 1):+.0f} %" if m in samples[place] and m in in_paper else ""
            for m in methods
        ]
        if any(changes):
            rows.append((place_name(place)[0], WHY_DIFFERENT.get(place[0], "sample of the reviews, features"), *changes))
    return table(("difference from the paper", "what differs", *methods), rows, left=2) if rows else ""


def ordered(samples: Samples) -> list[Place]:
    """In the order of the paper's tables, the sets it does not have behind."""
    names = [*ORDER, *(name for name, _ in samples if name not in ORDER)]
    return sorted(samples, key=lambda place: (names.index(place[0]), place[1]))


def honest(places: Iterable[Place]) -> list[Place]:
    """Text sets, each with the split that keeps copies of a review together if it has copies."""
    places = [place for place in places if place[1] != "given"]
    return [place for place in places if place[1] == "review" or (place[0], "review") not in places]


def plain(places: Iterable[Place]) -> list[Place]:
    return [place for place in places if place[1] == "plain"]


def ranks_table(
    samples: Samples,
    places: Sequence[Place],
    printed: Mapping[str, float],
    published: dict[str, dict[str, float]],
    methods: Sequence[str],
    more: Sequence[str] = (),
) -> str:
    """Average ranks of the paper's methods, as printed, recomputed and ours; and of ``more``, the same and others."""
    of_paper = [place for place in complete(samples, plain(places), methods) if place[0] in PAPER_NAMES]
    shared = {PAPER_NAMES[name]: published[PAPER_NAMES[name]] for name, _ in of_paper}
    found = [
        ("the paper's figures", table_of(published, methods)),
        ("the paper's figures, our sets", table_of(shared, methods)),
    ]
    if len(of_paper) < len(complete(samples, plain(places), methods)):
        found.append(("ours, plain, the paper's sets", errors_of(samples, of_paper, methods)))
    for title, chosen in (("ours, plain", plain(places)), ("ours, leak-free", honest(places))):
        found.append((title, errors_of(samples, chosen, methods)))
        if more:
            found.append((f"{title}, all {len(more)}", errors_of(samples, chosen, more)))
    columns = more or methods
    rows = [("as printed", f"{len(published)} sets", *(f"{rank:.2f}" for rank in printed.values()))]
    for title, errors in found:
        if len(errors):
            rows.append((title, f"{len(errors)} sets", *(f"{rank:.2f}" for rank in average_ranks(errors))))
    padded = [(*row, *("" for _ in range(2 + len(columns) - len(row)))) for row in rows]
    return table(("ranks of", "over", *columns), padded, left=2)
