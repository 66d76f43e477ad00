"""Which columns of a file become features, texts, ranks and groups, and what is said about the others."""

import datetime
import json
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from command import complaint
from rankplane import load_model
from rankplane.cli import main
from rankplane.inputs.reading import Batch, InputError, read_all
from rankplane.inputs.schema import Inputs, prepare, reason_to_leave_out
from rankplane.training.wording import data_notes
from reviews import make_rows, write_csv

N_ROWS = 300


def batch_of(**columns):
    n_rows = len(next(iter(columns.values())))
    return Batch(columns, list(range(2, n_rows + 2)))


def many(values):
    return [values[row % len(values)] for row in range(N_ROWS)]


DAYS = [datetime.date(2024, 1, 1) + datetime.timedelta(days=row // 3) for row in range(N_ROWS)]
PARQUET = {
    "number": pa.array([row * 0.5 for row in range(N_ROWS)]),
    "large": pa.array([2**64 - 1 - row for row in range(N_ROWS)], pa.uint64()),
    "price": pa.array(many([Decimal("1.50"), Decimal("2.25"), None])),
    "flag": pa.array(many([True, False, None])),
    "town": pa.array(many(["Ulm", "Bonn", None])).dictionary_encode(),
    "day": pa.array(DAYS),
    "moment": pa.array([row // 3 for row in range(N_ROWS)], pa.timestamp("ns")),
    "moment there": pa.array([row // 3 for row in range(N_ROWS)], pa.timestamp("us", tz="Europe/Berlin")),
    "clock": pa.array(many([datetime.time(12, 30), None])),
    "length": pa.array(many([1, 2]), pa.duration("s")),
    "tags": pa.array([[str(row // 3)] for row in range(N_ROWS)]),
    "place": pa.array([{"x": row // 3} for row in range(N_ROWS)]),
    "pairs": pa.array(many([[("a", 1)]]), pa.map_(pa.string(), pa.int64())),
    "raw": pa.array(many([b"a", b"b"])),
    "nothing": pa.nulls(N_ROWS),
    "gone": pa.array([None] * N_ROWS, pa.string()),
    "name": pa.array([f"name {row}" for row in range(N_ROWS)]),
}
LEFT_OUT = {
    "day": "it holds dates or times",
    "moment": "it holds dates or times",
    "moment there": "it holds dates or times",
    "clock": "it holds dates or times",
    "length": "it holds dates or times",
    "tags": "it holds lists",
    "place": "it holds objects",
    "pairs": "it holds lists",
    "raw": "it holds bytes",
    "nothing": "all its values are missing",
    "gone": "all its values are missing",
    "name": "its values hardly ever occur twice",
}


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pa.table(PARQUET | {"grade": pa.array(many([1, 2, 3]))}), path)
    return str(path)


def test_only_numbers_and_categories_are_features(table, tmp_path, capsys):
    output = str(tmp_path / "m.rankplane")
    assert main(["train", table, "--target", "grade", "--C", "1", "-o", output, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["data"]["left_out"] == LEFT_OUT
    assert told["inputs"]["columns"] == ["number", "large", "price", "flag", "town"]
    assert told["data"]["columns"] == 6
    assert set(data_notes(told["data"])) >= {f'column "{name}" is left out: {why}' for name, why in LEFT_OUT.items()}
    assert main(["predict", output, table, "-o", str(tmp_path / "out.parquet")]) == 0
    assert len(pyarrow.parquet.read_table(tmp_path / "out.parquet")) == N_ROWS
    for name in ("out.csv", "out.jsonl"):
        assert main(["predict", output, table, "-o", str(tmp_path / name)]) == 0


def test_the_same_table_in_csv_and_jsonl_has_the_same_features(table, tmp_path):
    """Dates are texts there, and lists in jsonl lists."""
    batch = read_all(table)
    taken = ("number", "price", "flag", "town", "day", "moment there", "nothing", "name", "grade")
    plain = {name: [value if value is None else str(value) for value in batch.columns[name]] for name in taken}
    rows = [dict(zip(plain, values, strict=True)) for values in zip(*plain.values(), strict=True)]
    jsonl = tmp_path / "in.jsonl"
    jsonl.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {}
    for path in (write_csv(tmp_path / "in.csv", rows), str(jsonl)):
        found[path] = Inputs.of(read_all(path), path, target="grade", text=[], group=None, ranks=None).columns
    assert set(map(tuple, found.values())) == {("number", "price", "flag", "town")}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (["2024-01-31", None, ""], "it holds dates or times"),
        (["2024-01-31T12:00", "2024-01-31 12:00:00.5+01:00", "2024-01-31T12:00:00Z"], "it holds dates or times"),
        (["2024-01-31", "soon"], None),
        (["2024", "2023"], None),
        ([1, "x", [2]], "it holds lists"),
        ([10**400, 1], None),
        (["NA", None, "nan", float("nan")], "all its values are missing"),
        ([f"{row // 2}x" for row in range(100)], None),
    ],
)
def test_reasons(values, reason):
    assert reason_to_leave_out("a", values) == reason
    assert reason_to_leave_out("", values) == "it has no name"


def test_the_index_of_a_frame_is_no_feature():
    inputs = Inputs.of(
        batch_of(**{"": ["0", "1"], "a": ["1", "2"], "y": ["1", "2"]}), "t", target="y", text=[], group=None, ranks=None
    )
    assert inputs.columns == ["a"]


@pytest.mark.parametrize(
    ("option", "column", "sentence"),
    [
        ("--text", "tags", "line 1: column \"tags\" holds lists, which are no texts. Got ['0']."),
        ("--text", "place", "line 1: column \"place\" holds objects, which are no texts. Got {'x': 0}."),
        ("--text", "day", 'line 1: column "day" holds dates or times, which are no texts. Got 2024-01-01.'),
        ("--text", "raw", 'line 1: column "raw" holds bytes, which are no texts.'),
        ("--group", "tags", 'line 1: column "tags" holds lists, which are no groups.'),
        ("--target", "place", 'line 1: column "place" holds objects, which are no ranks.'),
        ("--target", "day", 'line 1: "2024-01-01" in column "day" is not a number'),
    ],
)
def test_named_columns_are_refused_by_line(option, column, sentence, table, tmp_path, capsys):
    others = ["--text", "name"] if option == "--target" else ["--target", "grade"]
    found = complaint(capsys, ["train", table, *others, option, column, "--C", "1", "-o", tmp_path / "m"])
    assert found.startswith(f"{table} {sentence}")


def test_nested_json_is_no_text(tmp_path, capsys):
    rows = make_rows(60)
    model = tmp_path / "m"
    good = write_csv(tmp_path / "good.csv", rows)
    assert main(["train", good, "--text", "review", "--target", "stars", "--C", "1", "-o", str(model)]) == 0
    rows[7]["review"] = {"body": "good"}
    bad = tmp_path / "bad.jsonl"
    bad.write_text("\n".join(map(json.dumps, rows)))
    capsys.readouterr()
    sentence = f"{bad} line 8: column \"review\" holds objects, which are no texts. Got {{'body': 'good'}}."
    for command in (["train", bad, "--text", "review", "--target", "stars", "-o", tmp_path / "n"], ["predict", model, bad]):
        assert complaint(capsys, command) == sentence
    assert complaint(capsys, ["evaluate", model, bad]) == sentence


def test_numbers_as_texts_are_noted():
    batch = batch_of(code=["17", "4", "", "17"], word=["a", "1", "2", "3"], y=[1, 2, 1, 2])
    rows = prepare(batch, "t", Inputs("y", ["code", "word"]))
    assert 'column "code" is read as texts, but all its values are numbers' in data_notes(rows.notes)
    assert rows.notes["number_texts"] == ["code"]


def test_missing_texts_are_empty():
    assert Inputs("y", ["a"]).features(batch_of(a=[None, float("nan"), 3, "nan"]), "t") == ["", "", "3", "nan"]


def labels_of(values, ranks=None):
    return Inputs("y", ["a"], ranks=ranks).labels(batch_of(y=values), "t")[0].tolist()


def test_ranks_compare_as_numbers_where_all_are_numbers():
    ranks = ["0.5", "1", "2"]
    assert labels_of(["2.0", 1.0, ".5", "1", 2, Decimal("2.00"), " 1 ", "5e-1"], ranks) == [
        "2",
        "1",
        "0.5",
        "1",
        "2",
        "2",
        "1",
        "0.5",
    ]
    with pytest.raises(InputError, match=r't line 3: "3" is not one of the ranks 0\.5, 1, 2\.'):
        labels_of(["1", "3"], ranks)
    with pytest.raises(InputError, match=r't line 2: "1\.0" is not one of the ranks 1, two\.'):
        labels_of(["1.0"], ["1", "two"])
    with pytest.raises(InputError, match=r"^ranks must name different ranks, but some of these numbers are equal\. Got 1,1\.0\."):
        Inputs.of(batch_of(y=[1]), "t", target="y", text=["y"], group=None, ranks=["1", "1.0"])


@pytest.mark.parametrize("ranks", [None, ["false", "true"], ["False", "True"], ["false", "maybe", "true"], ["0", "1"]])
def test_booleans_are_the_same_ranks_in_csv_and_jsonl(ranks):
    expected = [1, 0] if ranks is None else [ranks[-1], ranks[0]]
    for values in ([True, False], ["true", "false"], ["True", "False"], ["TRUE", " FALSE "]):
        assert labels_of(values, ranks) == expected


def test_huge_ranks():
    assert labels_of([1e300, 2**53, 1]) == [1e300, 2**53, 1]
    with pytest.raises(InputError, match="is not a number"):
        labels_of([10**400])
    with pytest.raises(InputError, match=r'line 2: "x{57}\.\.\." in column "y" is not a number'):
        labels_of(["x" * 5000])


def test_old_notes_on_columns_left_out():
    notes = {"rows": 1, "missing_target": 0, "left_out": ["name"]}
    assert data_notes(notes) == ['column "name" is left out: its values hardly ever occur twice']


def test_delimiter_and_encoding_on_the_command_line(tmp_path, capsys):
    rows = [{"review": f"{row['review']} très", "stars": row["stars"]} for row in make_rows(80)]
    path = write_csv(tmp_path / "old.csv", rows, ";")
    content = (tmp_path / "old.csv").read_text(encoding="utf-8")
    (tmp_path / "old.csv").write_text(content, encoding="latin-1")
    options = ["--delimiter", ";", "--encoding", "latin-1"]
    train = ["train", path, "--text", "review", "--target", "stars", "--C", "1"]
    model, plain = str(tmp_path / "m"), write_csv(tmp_path / "plain.csv", rows)
    assert main([*train, *options, "--test", path, "-o", model]) == 0
    assert main(["evaluate", model, path, *options]) == 0
    assert main(["report", model, path, *options, "-o", str(tmp_path / "r.html")]) == 0
    assert main(["predict", model, path, *options, "-o", str(tmp_path / "a.csv")]) == 0
    assert main(["predict", model, plain, "-o", str(tmp_path / "b.csv")]) == 0
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
    np.testing.assert_array_equal("très" in load_model(model)[0].get_feature_names_out(), True)
    capsys.readouterr()
    assert "use --delimiter" in complaint(capsys, [*train, "--encoding", "latin-1", "-o", model])
    assert "name its encoding" in complaint(capsys, [*train, "--delimiter", ";", "-o", model])
    assert "lines of standard input are UTF-8" in complaint(capsys, ["predict", model, "-", "--encoding", "latin-1"])


@pytest.mark.parametrize("values", [[1, 10**30], [1, "x"], [[1], 2]])
def test_columns_that_parquet_has_no_type_for(values, tmp_path, capsys):
    model, rows = str(tmp_path / "m"), make_rows(60)
    good = write_csv(tmp_path / "good.csv", rows)
    assert main(["train", good, "--text", "review", "--target", "stars", "--C", "1", "-o", model]) == 0
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps({"review": "good", "other": value}) + "\n" for value in values))
    capsys.readouterr()
    sentence = 'column "other" holds values of several types, or too large for one: write jsonl instead.'
    assert complaint(capsys, ["predict", model, path, "-o", tmp_path / "out.parquet"]) == sentence
    assert main(["predict", model, str(path), "-o", str(tmp_path / "out.jsonl")]) == 0
