"""
From a csv file to a report
===========================

Three commands train a model on a csv file, predict the ranks of new rows, and write a report about
the model. The same commands work in a terminal.
"""

import csv
import html
import subprocess
import sys
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.metrics import ConfusionMatrixDisplay

from rankplane import datasets

# %%
# The data are made-up reviews with one to five stars. Some of them are kept for later.

folder = Path(tempfile.mkdtemp())
made = datasets.load("generated")
for name, rows in (("reviews.csv", slice(0, 1500)), ("later.csv", slice(1500, 2000))):
    with open(folder / name, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["review", "stars"])
        writer.writerows(zip(made.texts[rows], made.ranks[rows].tolist(), strict=True))
print((folder / "reviews.csv").read_text(encoding="utf-8")[:200])


# %%
# ``rankplane train`` chooses C by cross-validation and tests the model on a holdout of a fifth of
# the rows.


def rankplane(*arguments: str) -> None:
    """Run the command in the folder and show what it prints."""
    done = subprocess.run(
        [sys.executable, "-m", "rankplane", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    print(done.stdout)


rankplane("train", "reviews.csv", "--text", "review", "--target", "stars", "-o", "stars.rankplane")

# %%
# ``rankplane predict`` keeps the columns of its input and adds its own: here the predicted stars,
# and a set of ranks that contains the true one nine times out of ten.

rankplane("predict", "stars.rankplane", "later.csv", "-o", "ranked.csv", "--set", "0.9")
with open(folder / "ranked.csv", newline="", encoding="utf-8") as file:
    ranked = list(csv.DictReader(file))
for row in ranked[:3]:
    print({name: value for name, value in row.items() if name != "review"})

true_stars = np.array([int(row["stars"]) for row in ranked])
predictions = np.array([int(row["prediction"]) for row in ranked])
figure, axis = plt.subplots(figsize=(5, 4.2), layout="constrained")
ConfusionMatrixDisplay.from_predictions(
    true_stars, predictions, cmap="Blues", colorbar=False, ax=axis
)
axis.set(title="Later reviews", xlabel="predicted stars", ylabel="true stars")
plt.show()

# %%
# ``rankplane report`` writes a single HTML file, which opens without a network:

rankplane("report", "stars.rankplane", "later.csv", "-o", "stars.html")


class Page:
    """The report, embedded in this page."""

    def __init__(self, path: Path) -> None:
        self.content = path.read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        content = html.escape(self.content)
        return f'<iframe class="report" title="Report of the model" srcdoc="{content}"></iframe>'


Page(folder / "stars.html")
