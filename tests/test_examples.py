"""Every script of the gallery runs, draws, and shows what its text says."""

import os
import runpy
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"

# What the words around the pictures claim, in the variables of each script.
CLAIMS = {
    "chinese_and_korean": lambda found: (
        found["errors"]["Chinese", "words"] > 2 * found["errors"]["Chinese", "characters"]
        and found["errors"]["Chinese", "words"] > 2 * found["errors"]["Chinese", "segmenter"]
        and max(error for (language, _), error in found["errors"].items() if language == "Korean") < found["constant"] / 2
    ),
    "choosing_c": lambda found: (
        found["Cs"][0] < found["search"].best_C_ < found["Cs"][-1] and found["mean"][-1] > found["mean"].min()
    ),
    "csv_to_report": lambda found: (
        found["true_stars"].shape == found["predictions"].shape == (500,)
        and np.mean(found["true_stars"] == found["predictions"]) > 0.6
        and "<svg" in (found["folder"] / "stars.html").read_text(encoding="utf-8")
    ),
    # Upper left, far from the samples of rank 4, where only the nearest plane says 4.
    "decision_regions": lambda found: (
        4 in found["regions"]["nearest"][150:, :60] and 4 not in found["regions"]["ordered"][150:, :60]
    ),
    "explaining": lambda found: found["boundary"].score == pytest.approx(sum(value for _, value in found["terms"]), abs=1e-4),
    "kernels": lambda found: found["errors"]["rbf"] < found["errors"]["linear"] / 2,
    "probabilities": lambda found: (
        np.max(np.abs(found["said"] - found["found"])) < 0.1 and np.all(np.array(found["held"]) > found["asked"] - 0.03)
    ),
    "skewed_ranks": lambda found: (
        max(found["macro"]["balanced planes"], found["macro"]["balanced costs"]) < found["macro"]["plain"] - 0.1
    ),
}


def test_every_example_has_a_claim():
    assert sorted(path.stem for path in EXAMPLES.glob("*.py")) == sorted(CLAIMS)


@pytest.mark.parametrize("name", sorted(CLAIMS))
def test_example_shows_what_it_says(name, tmp_path, monkeypatch):
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    n_shown = []

    def show():
        n_shown.append(len(plt.get_fignums()))
        for number in plt.get_fignums():
            plt.figure(number).canvas.draw()
        plt.close("all")

    monkeypatch.setattr(plt, "show", show)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", os.fspath(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    found = runpy.run_path(os.fspath(EXAMPLES / f"{name}.py"))
    assert sum(n_shown) > 0
    assert CLAIMS[name](found)
