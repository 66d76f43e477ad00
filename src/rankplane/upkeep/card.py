"""A model card: what a model file says of its model, as Markdown for those who use the model without having trained it."""

import re
from typing import Any

from rankplane.metrics import MEASURES
from rankplane.training.wording import HEADINGS, MEASURED, data_notes, format_measure
from rankplane.upkeep.facts import Facts, decision_in_words, needed_columns

SPECIAL = re.compile(r"([\\`*_{}\[\]<>|#~])")


def plain(text: Any) -> str:
    """Text that has no meaning in Markdown or HTML."""
    return SPECIAL.sub(r"\\\1", str(text)).replace("&", "&amp;")


def code(text: str) -> str:
    """Text in a code span, whatever is in it."""
    ticks = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{space}{text}{space}{ticks}".replace("|", "\\|")


def block(lines: list[str], language: str) -> list[str]:
    fence = "`" * max(3, 1 + max((len(ticks) for line in lines for ticks in re.findall("`+", line)), default=0))
    return [f"{fence}{language}", *lines, fence, ""]


def table(headings: list[str], rows: list[list[str]]) -> list[str]:
    lines = [headings, ["---"] * len(headings), *rows]
    return [f"| {' | '.join(cells)} |" for cells in lines] + [""]


def card(facts: Facts) -> str:
    """Sections by task; those that the file says nothing about are left out."""
    lines = [f"# {plain(facts['file'])}", "", *of_model(facts)]
    if facts["warnings"]:
        lines += ["## Warnings", "", *(f"- {plain(warning)}" for warning in facts["warnings"]), ""]
    lines += [*of_use(facts), *of_data(facts), *of_measures(facts), *of_features(facts), *of_metadata(facts)]
    return "\n".join(lines).rstrip() + "\n"


def of_model(facts: Facts) -> list[str]:
    if "ranks" not in facts:
        return [f"A {facts['model']}, which turns data into columns and predicts nothing.", ""]
    kernel = "" if facts["kernel"] == "linear" else f", {facts['kernel']} kernel"
    rows = [
        ["model", f"{facts['model']}{kernel}: {plain(facts['summary'].rstrip('.'))}"],
        ["ranks, lowest first", ", ".join(map(plain, facts["ranks"]))],
        ["predicts", f"{decision_in_words(facts)} (decision {facts['decision']})"],
        ["probabilities", "calibrated on held-out rows" if facts["has_probabilities"] else "none"],
        ["steps", ", ".join(map(plain, facts["steps"]))],
        ["columns of weights", f"{facts['columns']:,}"],
        *([["C", f"{facts['C']:g}"]] if facts["C"] is not None else []),
        *([["gamma", f"{facts['gamma']:.6g}"]] if facts["gamma"] is not None else []),
        ["size of the file", f"{facts['bytes']:,} bytes"],
        ["written", f"{plain(facts['date'])}, by rankplane {plain(facts['version'])}"],
    ]
    return table(["", ""], rows)


def of_use(facts: Facts) -> list[str]:
    usage, columns = facts["usage"], needed_columns(facts)
    lines = ["## Use", ""]
    if columns is not None:
        lines += [f"Takes {plain(columns)}.", ""]
    lines += block(usage["shell"], "sh") if usage["shell"] else []
    return lines + block(usage["python"], "python")


def of_data(facts: Facts) -> list[str]:
    lines = []
    if trained := facts["trained"]:
        data = trained["data"]
        first = f", its first {trained['limit']:,} rows" if "limit" in trained else ""
        lines += [
            "## Training data",
            "",
            f"{plain(trained.get('source'))}{first}: trained on {data.get('trained_on', 0):,} rows.",
            "",
        ]
        counts = data.get("trained_ranks") or data.get("ranks") or {}
        total = max(sum(counts.values()), 1)
        lines += table(["rank", "rows", "share"], [[plain(rank), f"{n:,}", f"{n / total:.0%}"] for rank, n in counts.items()])
        lines += [f"- {plain(note)}" for note in data_notes(data)] if "missing_target" in data else []
        lines += [f"- {plain(trained['fingerprint'])}"] if "fingerprint" in trained else []
        lines.append("")
    if record := facts["recalibrated"]:
        lines += [f"Probabilities were learnt anew from {record['rows']:,} rows of {plain(record.get('source'))}.", ""]
    return lines


def of_measures(facts: Facts) -> list[str]:
    metrics = facts["metrics"]
    if not metrics:
        return []
    rows = [
        [plain(MEASURED.get(name, name)), *(format_measure(values[measure]) for measure in HEADINGS)]
        for name, values in metrics.items()
        if name != "rows"
    ]
    headings = [f"{HEADINGS[name]} {'↑' if MEASURES[name][1] else '↓'}" for name in HEADINGS]
    lines = ["## Measures", "", f"On {metrics['rows']:,} {plain(facts['measured_on'])}. More is better ↑, less is better ↓.", ""]
    return lines + table(["", *headings], rows)


def of_features(facts: Facts) -> list[str]:
    if not facts.get("important"):
        return []
    rows = [
        [
            f"{plain(found['lower'])} or {plain(found['upper'])}",
            *(", ".join(code(str(name)) for name, _ in found[way]) for way in ("down", "up")),
        ]
        for found in facts["important"]
    ]
    return ["## Most important features", "", *table(["between", "pull down", "pull up"], rows)]


def of_metadata(facts: Facts) -> list[str]:
    if not facts["metadata"]:
        return []
    return ["## Metadata", "", *(f"- {plain(name)}: {plain(value)}" for name, value in facts["metadata"].items()), ""]
