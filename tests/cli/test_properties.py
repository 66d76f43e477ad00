"""Whatever the tables and options: a command ends with exit code 0, or with exit code 2 and one line that says why."""

import csv
import gzip
import io
import json
import os
import sys
import tempfile
import warnings
from contextlib import contextmanager

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from rankplane import load_model
from rankplane.cli import main

QUICK = settings(
    max_examples=int(os.environ.get("RANKPLANE_EXAMPLES", "60")),
    deadline=None,
    derandomize="RANKPLANE_EXAMPLES" not in os.environ,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
LETTERS = st.one_of(st.characters(codec="utf-8"), st.sampled_from("ab,;\t\"'\n\r\\|:#={}[]\x00\ufeff 019.-+eE_"))
NAMES = st.one_of(st.sampled_from(["r", "text", "label", "prediction", "p_1", "set", "", " ", "a,b"]), st.text(LETTERS, max_size=6))
WORDS = st.sampled_from(
    ["", "good", "bad", "na", "None", "nan", "inf", "-inf", "1", "2.0", "1e999", "-0", "true", "1_0", "٣", " 2 "]
)
NUMBERS = st.one_of(st.integers(-3, 9), st.floats(), st.integers(), st.sampled_from([10**400, -(2**63), 1e308, 5e-324]))
PLAIN = st.one_of(WORDS, st.text(LETTERS, max_size=12), NUMBERS, st.none(), st.booleans())
NESTED = st.recursive(
    PLAIN, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(NAMES, inner, max_size=2)), max_leaves=4
)
COLUMNS = st.one_of(
    st.lists(st.sampled_from([1, 2, 3]), min_size=1),
    st.lists(st.sampled_from(["low", "high", ""]), min_size=1),
    st.lists(st.floats(-9, 9), min_size=1),
    st.lists(st.text(st.sampled_from("ab c"), max_size=9), min_size=1),
    st.lists(PLAIN, min_size=1),
    st.lists(NESTED, min_size=1),
)
KINDS = [".csv", ".tsv", ".jsonl", ".parquet", ".svm", ".csv.gz", ".jsonl.gz", ".parquet.gz"]


RANKS = [([1, 2], None), ([1, 2, 3, 2], "1,2,3"), (["low", "high"], "low,high"), ([0.5, 1, 1.5], "0.5,1,1.5"), ([1, 2, None], None)]


def seldom(draw):
    return draw(st.integers(0, 9)) == 9


@st.composite
def tables(draw):
    """Names, rows of cells, and the order of the ranks in the first column; a column repeats what was drawn for it."""
    names = draw(st.lists(NAMES, min_size=2, max_size=4, unique=not seldom(draw)))
    n_rows = draw(st.sampled_from([0, 1, 3])) if seldom(draw) else draw(st.integers(12, 40))
    ranks, order = (draw(COLUMNS), None) if seldom(draw) else draw(st.sampled_from(RANKS))
    columns = [ranks, *(draw(COLUMNS) for _ in names[1:])]
    return names, [[column[row % len(column)] for column in columns] for row in range(n_rows)], order


def content_of(table, kind):
    names, rows, _ = table
    stem = kind.removesuffix(".gz")
    if stem in (".csv", ".tsv"):
        text = io.StringIO(newline="")
        csv.writer(text, delimiter="," if stem == ".csv" else "\t").writerows([names, *rows])
        content = text.getvalue().encode("utf-8", "surrogatepass")
    elif stem == ".jsonl":
        content = "".join(json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows).encode()
    elif stem == ".svm":
        lines = [" ".join([str(row[0]), *(f"{n}:{cell}" for n, cell in enumerate(row[1:], 1))]) for row in rows]
        content = "\n".join(lines).encode("utf-8", "surrogatepass")
    else:
        content = parquet_of(names, rows)
    return gzip.compress(content) if kind.endswith(".gz") else content


def parquet_of(names, rows):
    import pyarrow as pa
    import pyarrow.parquet

    arrays = []
    for column in zip(*rows, strict=True) if rows else [[] for _ in names]:
        try:
            arrays.append(pa.array(list(column)))
        except (pa.ArrowException, TypeError, ValueError, OverflowError):
            arrays.append(pa.array([str(cell) for cell in column]))
    file = io.BytesIO()
    try:
        pyarrow.parquet.write_table(pa.table(arrays, names=names), file)
    except pa.ArrowException:  # types that this format does not have
        return b"PAR1"
    return file.getvalue()


@contextmanager
def streams(stdin=b""):
    """Standard streams of our own."""
    before = sys.stdin, sys.stdout, sys.stderr
    sys.stdin = io.TextIOWrapper(io.BytesIO(stdin))
    sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(), encoding="utf-8"), io.StringIO()
    try:
        yield sys.stdout.buffer, sys.stderr
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


def run(arguments, stdin=b""):
    """The exit code, after a look at what was said."""
    with streams(stdin) as (_, stderr), warnings.catch_warnings():
        warnings.simplefilter("always", ConvergenceWarning)  # all others are bugs
        code = main(arguments)
    said = stderr.getvalue()
    lines = said.splitlines()
    complaints = [line for line in lines if not line.startswith("rankplane: warning: ")]
    assert code in (0, 2), (arguments, said)
    assert said.endswith("\n") == bool(said)
    assert len(complaints) == (code == 2), (arguments, said)
    assert all(line.startswith("rankplane: ") and len(line) > len("rankplane: ") for line in lines), (arguments, said)
    event(f"{arguments[0]} {code}")
    return code


@st.composite
def options(draw, table):
    """Options of train, most of them sensible."""
    names, _, order = table
    named = NAMES if seldom(draw) else st.sampled_from(names[1:])
    found = ["--target", draw(named) if seldom(draw) else names[0], "--C", "1", "--jobs", "1"]
    for _ in range(draw(st.sampled_from([0, 0, 1, 2]))):
        found += ["--text", draw(named)]
    if seldom(draw):
        found += ["--group", draw(named)]
    if seldom(draw):
        order = draw(st.sampled_from(["True,False", "a,,b", "a,a", "x,y", "1,2", "nan,inf"]))
    if order:
        found += ["--ranks", order]
    return [*found, "--holdout", draw(st.sampled_from(["0.5", "0.99", "nan"])) if seldom(draw) else "0"]


def is_argument(text):
    """What a system can pass to a process."""
    return "\0" not in text and not any("\ud800" <= letter <= "\udfff" for letter in text)


@QUICK
@given(st.data())
def test_tables_of_any_shape(data):
    table, kind = data.draw(tables()), data.draw(st.sampled_from(KINDS))
    other, other_kind = data.draw(st.one_of(st.just(table), tables())), data.draw(st.sampled_from([kind, *KINDS]))
    chosen = data.draw(options(table).filter(lambda found: all(map(is_argument, found))))
    out = data.draw(st.sampled_from([".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz"]))
    with tempfile.TemporaryDirectory() as folder:
        source, later, model, output = (os.path.join(folder, name) for name in (f"a{kind}", f"b{other_kind}", "m", f"o{out}"))
        for path, content in ((source, content_of(table, kind)), (later, content_of(other, other_kind))):
            with open(path, "wb") as file:
                file.write(content)
        code = run(["train", source, *chosen, "-o", model])
        assert os.path.exists(model) == (code == 0)
        if code:
            return
        load_model(model)
        code = run(["predict", model, later, "-o", output, "--proba", "--set", "0.9"])
        assert os.path.exists(output) == (code == 0)
        run(["predict", model, source])
        run(["evaluate", model, later])
        run(["evaluate", model, later, "--json"])
        run(["predict", model, "-"], stdin=content_of(other, ".tsv"))
        run(["report", model, later, "-o", os.path.join(folder, "page.html")])
        assert not [name for name in os.listdir(folder) if name.endswith(".partial")]


@QUICK
@given(st.data())
def test_files_of_any_bytes(data):
    kind = data.draw(st.sampled_from([*KINDS, ".zst", ".csv.zst", ".csv.bz2", ".csv.xz", "", ".libsvm"]))
    contents = [
        st.binary(max_size=60),
        st.text(LETTERS, max_size=80).map(str.encode),
        *([spoilt(kind)] * 2 if kind in KINDS else []),
    ]
    content = data.draw(st.one_of(contents))
    with tempfile.TemporaryDirectory() as folder:
        source = os.path.join(folder, f"a{kind}")
        with open(source, "wb") as file:
            file.write(content)
        run(
            [
                "train",
                source,
                "--target",
                "label" if kind in (".svm", ".libsvm") else "r",
                "--C",
                "1",
                "--jobs",
                "1",
                "--holdout",
                "0",
                "-o",
                os.path.join(folder, "m"),
            ]
        )
        run(["predict", source, source])


@st.composite
def spoilt(draw, kind):
    """A good file with some bytes cut out or changed."""
    content = content_of((["r", "x"], [[n % 3, n] for n in range(30)], None), kind)
    start = draw(st.integers(0, len(content)))
    return content[:start] + draw(st.binary(max_size=3)) + content[start + draw(st.integers(0, 9)) :]


@QUICK
@given(st.lists(st.text(LETTERS, max_size=9).filter(is_argument), max_size=5))
def test_arguments_of_any_kind(arguments):
    for command in ("", "train", "predict", "evaluate", "explain", "report", "info", "compare", "recalibrate", "export"):
        run([word for word in [command, *arguments] if word != "--version"])
