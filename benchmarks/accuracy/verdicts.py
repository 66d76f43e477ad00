"""Who is better in what: our models against each rival, measure by measure."""

from lab.competitors import rankplane
from lab.measures import MEASURES
from lab.results import Line


def at_least_as_good(ours: dict[str, float], theirs: dict[str, float]) -> dict[str, bool]:
    """By measure; larger is better for accuracy, smaller for the errors."""
    return {m: ours[m] >= theirs[m] if m == "accuracy" else ours[m] <= theirs[m] for m in MEASURES}


def judged(lines: list[Line]) -> list[Line]:
    """The lines of one data set with the column that compares each rival with our models, in each measure."""
    ours = {line["competitor"]: line["measures"] for line in lines if line["competitor"] in rankplane.VARIANTS}
    for line in lines:
        is_rival = line["measures"] is not None and line["competitor"] not in rankplane.VARIANTS
        line["ours_is_at_least_as_good"] = (
            {name: at_least_as_good(found, line["measures"]) for name, found in ours.items()} if is_rival else None
        )
    return lines


def losses(verdict: dict[str, dict[str, bool]] | None, name: str) -> list[str]:
    """The measures in which a rival is better than our model of that name."""
    return [m for m in MEASURES if verdict is not None and not verdict.get(name, {}).get(m, True)]
