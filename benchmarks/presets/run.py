"""Features and model chosen by measurement against each single preset: ``python -m benchmarks.presets.run``.

What ``rankplane train`` does, on the same training and test rows, of all text sets of the data folder. The single presets are
fitted with the model that the choice prefers most often, Committee with column weights; "auto" also chooses the model. Copies of a
text stay on one side of the split. Seconds are of the processor, and those of "auto" include its choice.
"""

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.common import Log, each_set, options_parser
from lab import data as data_sets
from lab import text
from lab.display import progress
from rankplane.inputs.schema import Inputs, Rows
from rankplane.text.packed import Texts
from rankplane.training import fitting
from rankplane.training.choices import Choices
from rankplane.training.splitting import split

SETS = ["treebank", "moviereview", "clothing", "video", "tablets", "largemovie", "douban", "mobilephone", "tripadvisor"]
AUTO = "auto"
SINGLE: dict[str, dict[str, Any]] = {
    "words 1-2": {},
    "words 1-3": {"ngrams": "1-3"},
    "characters 1-4": {"analyzer": "char", "ngrams": "1-4"},
    "characters within words 2-5": {"analyzer": "char_wb", "ngrams": "2-5"},
    "words 1-2 and characters 1-4": {"analyzer": "word,char", "ngrams": "1-2,1-4"},
    "words 1-2 and characters within words 2-5": {"analyzer": "word,char_wb", "ngrams": "1-2,2-5"},
}
CHINESE: dict[str, dict[str, Any]] = {
    "Chinese words 1-2": {"segmenter": "chinese"},
    "Chinese words 1-2 and characters 1-3": {"segmenter": "chinese", "analyzer": "word,char", "ngrams": "1-2,1-3"},
}
TEST_SHARE = 0.3
Line = dict[str, Any]


def load(name: str, folder: Any, n_rows: int) -> Rows:
    """Different texts of a set, at random if there are more than asked for."""
    assert folder is not None
    texts, ranks = text.texts_of(text.read_frame(folder / f"{name}.parquet"))
    _, first = np.unique(np.array(texts, dtype=object), return_index=True)
    kept = np.sort(np.random.default_rng(0).permutation(first)[:n_rows])
    chosen = Texts.of([texts[row] for row in kept.tolist()])
    return Rows(chosen, ranks[kept], np.arange(len(kept)), {"missing_target": 0})


def errors_of(rows: Rows, test: Rows, choices: Choices) -> tuple[Line, NDArray[Any]]:
    """What a preset costs and how good it is, and its distance from the rank of each test row."""
    start = time.process_time()
    trained = fitting.train(rows, Inputs("rank", ["text"]), choices, test)
    seconds = time.process_time() - start
    assert trained.test is not None
    metadata = trained.model.metadata
    chosen = {record["what"]: record["chosen"] for record in metadata["choice"]}
    found = {name: metadata["metrics"]["model"][name] for name in ("mae", "accuracy", "mse")}
    line = {"measures": found, "cpu_seconds": round(seconds, 1), "columns": metadata["data"]["columns"], "chosen": chosen}
    return line, np.abs(trained.model.predict(trained.test.X).astype(float) - test.labels)


def measure(name: str, rows: Rows) -> list[Line]:
    training, test = split(rows, TEST_SHARE, 0)
    about = {"name": name, "rows": len(training.labels), "test_rows": len(test.labels), "ranks": len(np.unique(rows.labels))}
    presets = {AUTO: Choices(jobs=1)}
    for single, options in (SINGLE | (CHINESE if name == "douban" else {})).items():
        presets[single] = Choices(model="Committee", preset="default", jobs=1, **options)
    lines, errors = [], {}
    with progress(name, len(presets)) as advance:
        for preset, choices in presets.items():
            advance(preset)
            line, errors[preset] = errors_of(training, test, choices)
            worse = errors[AUTO] - errors[preset]
            noise = float(worse.std() / np.sqrt(len(worse)))
            lines.append({"data": about, "preset": preset, "auto_worse_by": float(worse.mean()), "noise": noise} | line)
    return lines


def main(arguments: list[str] | None = None) -> None:
    parser = options_parser("benchmarks.presets.run", __doc__, SETS)
    parser.add_argument("--rows", type=int, default=20_000, help="rows of a set, training and test (default: %(default)s)")
    options = parser.parse_args(arguments)
    log = Log("presets", not options.no_save)
    for name, rows in each_set(options, data_sets, lambda name, folder: (name, load(name, folder, options.rows))):
        for line in measure(name, rows):
            print(f"{name}: {line['preset']}: MAE {line['measures']['mae']:.4f}, {line['cpu_seconds']:.1f} s", flush=True)
            log.write(**line)


if __name__ == "__main__":
    main()
