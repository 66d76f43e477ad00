"""What readers make of files, and one sentence with the file and the line for those that they cannot read."""

import bz2
import gzip
import io
import json
import lzma
import math
import os
import random
import re
import sys
import threading

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from fuzz import fuzz_readers
from rankplane.inputs import delimited, reading
from rankplane.inputs.jsonl import parsed_json
from rankplane.inputs.reading import Dialect, InputError, read_all, read_batches


def whole(folder, name, content, **options):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return read_all(str(path), **options)


def complaint(folder, name, content, **options):
    """The sentence of the command line for a bad file, less the folder that it is in."""
    with pytest.raises(InputError) as error:
        whole(folder, name, content, **options)
    sentence = error.value.with_options
    assert "\n" not in sentence
    assert sentence.endswith((".", "?"))
    return sentence.replace(f"{folder}{os.sep}", "")


GOOD_CSV = {
    "plain": ("a,b\n1,x\n2,y\n", {"a": ["1", "2"], "b": ["x", "y"]}, [2, 3]),
    "no last line end": ("a,b\n1,x", {"a": ["1"], "b": ["x"]}, [2]),
    "crlf": ("a,b\r\n1,x\r\n", {"a": ["1"], "b": ["x"]}, [2]),
    "crlf and lf": ("a,b\r\n1,x\n2,y\r\n", {"a": ["1", "2"], "b": ["x", "y"]}, [2, 3]),
    "old Mac": ("a,b\r1,x\r2,y\r", {"a": ["1", "2"], "b": ["x", "y"]}, [2, 3]),
    "mark": ("\ufeffa,b\n1,x\n", {"a": ["1"], "b": ["x"]}, [2]),
    "mark before a quote": ('\ufeff"a",b\n1,x\n', {"a": ["1"], "b": ["x"]}, [2]),
    "mark in the middle": ('a,b\n1,x\n\ufeff"2",y\n', {"a": ["1", "2"], "b": ["x", "y"]}, [2, 3]),
    "blank lines": ("\n  \na,b\n\n1,x\n   \n\n2,y\n\n", {"a": ["1", "2"], "b": ["x", "y"]}, [5, 8]),
    "lines within quotes": ('a,b\n"1\n\n2\r3",x\n4,y\n', {"a": ["1\n\n2\r3", "4"], "b": ["x", "y"]}, [5, 6]),
    "quotes in the middle": ('a,b\n5" disk,x\n"say ""hi""",y\n', {"a": ['5" disk', 'say "hi"'], "b": ["x", "y"]}, [2, 3]),
    "one column": ('a\nx\n""\n  \n\ny\n', {"a": ["x", "", "  ", "y"]}, [2, 3, 4, 6]),
    "one column of texts": ("a\nx, y; z\n".replace(",", ""), {"a": ["x y; z"]}, [2]),
    "a nameless index": (",a\n0,x\n", {"": ["0"], "a": ["x"]}, [2]),
    "header and one row alike": ("a\na\n", {"a": ["a"]}, [2]),
}


@pytest.mark.parametrize("case", GOOD_CSV)
def test_csv(case, tmp_path):
    content, columns, lines = GOOD_CSV[case]
    found = whole(tmp_path, "t.csv", content)
    assert (found.columns, list(found.lines)) == (columns, lines)


def test_long_fields_and_many_columns(tmp_path):
    assert len(whole(tmp_path, "t.csv", "a,b\n" + "x" * 3_000_000 + ",1\n").columns["a"][0]) == 3_000_000
    names = [f"c{number}" for number in range(100_000)]
    found = whole(tmp_path, "t.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert list(found.columns) == names
    names[-1] = "c7"
    sentence = complaint(tmp_path, "t.csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert sentence == 't.csv line 1: column "c7" occurs twice.'


QUOTED = "a quote is opened whose closing quote{} has text after it; quotes within a field are doubled."
BAD_CSV = {
    "lone carriage return": (
        "text,stars\ngood,5\nbad\rvery bad,1\n",
        "line 3: the line ends in a carriage return, but the header in a line feed; line ends within a field must be quoted.",
    ),
    "lone carriage return in one column": ("text\ngood\nbad\rvery bad\n", "line 3: the line ends in a carriage return, but"),
    "carriage return in the header": (
        "te\rxt,stars\ngood,5\n",
        "line 2: the line ends in a line feed, but the header",
    ),
    "open quote": ('a,b\n1,x\n"2,y\n3,z\n4,w\n', "line 3: a quote is opened and never closed."),
    "open quote after a good one": ('a,b\n"1\n2","x\ny\nz\n', "line 3: a quote is opened and never closed."),
    "open quote after doubled ones": ('a,b\n"1""\n""2",x\n"say ""no"",y\n', "line 4: a quote is opened and never closed."),
    "quote closed later": ('a,b\n"1,x\n2,"y\n3,z\n', "line 2: " + QUOTED.format(" on line 3")),
    "text after a quote": ('a,b\n1,x\n"2"2,y\n', "line 3: " + QUOTED.format("")),
    "fewer": ("a,b\n1\n", "line 2: 1 field, but the header has 2."),
    "more": ("a,b\n1,2,3\n", "line 2: 3 fields, but the header has 2."),
    "trailing comma": ("a,b\n1,2,\n", "line 2: 3 fields, but the header has 2: a trailing comma?"),
    "trailing commas": ("a,b\n1,2,,\n", "line 2: 4 fields, but the header has 2: a trailing comma?"),
    "twice": ("a,b,a\n1,2,3\n", 'line 1: column "a" occurs twice.'),
    "nameless": ("a,,\n1,2,3\n", "line 1: 2 columns have no name."),
    "joined files": ("a,b\n1,2\na,b\n3,4\n", "line 3: the header occurs again; were files joined?"),
    "zero byte": ("a,b\n" + "1,2\n" * 2000 + "3,\0\n", "line 2002 holds a NUL byte, which no text does."),
}


@pytest.mark.parametrize("case", BAD_CSV)
def test_bad_csv(case, tmp_path):
    content, sentence = BAD_CSV[case]
    assert complaint(tmp_path, "t.csv", content).startswith(f"t.csv {sentence}")


@pytest.mark.parametrize("content", ["", "\n\n", "\ufeff", "   \n"])
def test_nothing_in_a_file(content, tmp_path):
    assert complaint(tmp_path, "t.csv", content) == "t.csv is empty."
    assert complaint(tmp_path, "t.jsonl", content) in ("t.jsonl is empty.", "t.jsonl has no rows.")
    assert complaint(tmp_path, "t.csv.gz", gzip.compress(content.encode())) == "t.csv.gz is empty."
    assert complaint(tmp_path, "h.csv", "a,b\n") == "h.csv has no rows."


def test_a_field_has_a_longest_length(tmp_path, monkeypatch):
    """A quote that is never closed would take memory for the whole file."""
    monkeypatch.setattr(delimited, "MAX_FIELD", 1000)
    sentence = complaint(tmp_path, "t.csv", 'a,b\n1,2\n"3,4\n' + "5,6\n" * 1000)
    assert sentence == "t.csv line 3: a field is longer than 1,000 characters; is a quote never closed?"


@pytest.mark.parametrize(
    ("name", "content", "delimiter", "shown"),
    [
        ("t.csv", "text;stars\ngood, really;5\n", ";", '";"'),
        ("t.csv", "text\tstars\ngood\t5\n", "tab", "tab"),
        ("t.csv", "text\tstars\ngood\t5\n", "\\t", "tab"),
        ("t.csv", "text|stars\ngood|5\n", "|", '"|"'),
        ("t.tsv", "text,stars\ngood,5\n", ",", '","'),
        ("t.csv", "text;stars\n", None, '";"'),
    ],
)
def test_delimiters_are_noticed_and_can_be_named(name, content, delimiter, shown, tmp_path):
    sentence = complaint(tmp_path, name, content)
    assert sentence.endswith(f": if its columns are separated by {shown}, use --delimiter {shown}.")
    if delimiter is not None:
        found = whole(tmp_path, name, content, dialect=Dialect(delimiter)).columns
        assert list(found) == ["text", "stars"]
        assert found["stars"] == ["5"]


def test_one_column_whose_name_has_a_delimiter(tmp_path):
    assert list(whole(tmp_path, "t.csv", "this; that\nboth\n").columns) == ["this; that"]
    assert list(whole(tmp_path, "t.csv", '"this, that"\n"a, b"\n').columns) == ["this, that"]
    assert list(whole(tmp_path, "t.csv", "this; that\na; b\n", dialect=Dialect(",")).columns) == ["this; that"]


@pytest.mark.parametrize("delimiter", ["", "ab", '"', "\n", "\r"])
def test_bad_delimiters(delimiter, tmp_path):
    sentence = complaint(tmp_path, "t.csv", "a,b\n1,2\n", dialect=Dialect(delimiter))
    assert re.match("--delimiter must be one character, no quote, or the word tab. Got ", sentence)


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-16-be", "utf-32", "utf-8", "utf-8-sig", "shift-jis"])
def test_encodings(encoding, tmp_path):
    word = "日本" if encoding == "shift-jis" else "très"
    text = f"a,b\n{word},1\n" * 1
    assert whole(tmp_path, "t.csv", text.encode(encoding), dialect=Dialect(encoding=encoding)).columns["a"] == [word]
    line = json.dumps({"a": word}, ensure_ascii=False)
    assert whole(tmp_path, "t.jsonl", line.encode(encoding), dialect=Dialect(encoding=encoding)).columns["a"] == [word]


def test_encodings_that_do_not_fit(tmp_path):
    text = "a,b\n" + "good,1\n" * 5000 + "très,1\nbon,2\n"
    sentence = "line 5002 is not UTF-8 text: name its encoding, such as --encoding latin-1."
    assert complaint(tmp_path, "t.csv", text.encode("latin-1")) == f"t.csv {sentence}"
    assert complaint(tmp_path, "t.csv.gz", gzip.compress(text.encode("latin-1"))) == f"t.csv.gz {sentence}"
    mac = text.replace("\n", "\r").encode("latin-1")
    assert complaint(tmp_path, "t.csv", mac) == f"t.csv {sentence}"
    sentence = "t.csv line 5002 is not ascii text: name another --encoding."
    assert complaint(tmp_path, "t.csv", text.encode(), dialect=Dialect(encoding="ascii")) == sentence
    for encoding, name in (("utf-16", "utf-16"), ("utf-32", "utf-32"), ("utf-16-le", "utf-16-le"), ("utf-16-be", "utf-16-be")):
        sentence = complaint(tmp_path, "t.csv", text.encode(encoding))
        assert sentence == f"t.csv is {name.upper()} text: use --encoding {name}."
    for encoding in ("klingon", "hex", "rot13", "a\0b", ""):
        assert complaint(tmp_path, "t.csv", "a\n1\n", dialect=Dialect(encoding=encoding)).startswith(
            "--encoding must name a text enc"
        )


def test_options_that_do_not_apply_are_refused(tmp_path):
    sentence = complaint(tmp_path, "t.jsonl", "{}", dialect=Dialect(";"))
    assert sentence == "--delimiter is for csv and tsv files. t.jsonl is jsonl."
    sentence = complaint(tmp_path, "t.parquet", "x", dialect=Dialect(encoding="utf-16"))
    assert sentence == "--encoding is for text files. t.parquet is parquet."


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs a named pipe")
def test_a_bad_line_of_a_pipe_is_named(tmp_path):
    """A pipe cannot be read a second time to find it."""
    path = tmp_path / "pipe.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(b"a,b\n1,2\n\xff,3\n"))
    writer.start()
    with pytest.raises(InputError, match=r"pipe\.csv line 3 is not UTF-8 text"):
        list(read_batches(str(path)))
    writer.join(timeout=60)
    assert not writer.is_alive()


def test_jsonl(tmp_path):
    lines = [
        '\ufeff{"a": 1}',
        "",
        '\ufeff{"a": NaN, "b": [1, {"c": null}]}',
        '{"b": Infinity}\r',
        '{"a": "\\ud83d\\ude00 \\\\ud800"}',
    ]
    found = whole(tmp_path, "t.jsonl", "\n".join(lines))
    assert list(found.lines) == [1, 3, 4, 5]
    assert found.columns["a"][0] == 1
    assert math.isnan(found.columns["a"][1])
    assert found.columns["a"][2:] == [None, "\U0001f600 \\ud800"]
    assert found.columns["b"] == [None, [1, {"c": None}], math.inf, None]
    deep = "[" * 90 + "]" * 90
    assert whole(tmp_path, "t.jsonl", f'{{"a": {deep}}}').columns["a"] == [json.loads(deep)]
    assert whole(tmp_path, "t.jsonl", json.dumps({"a": [[]] * 500})).columns["a"] == [[[]] * 500]


DEEP = "lists and objects are nested deeper than 100 levels."
BAD_JSONL = {
    "cut": ('{"a"', "not JSON: Expecting ':' delimiter at character 5."),
    "not an object": ("[1]", "must be a JSON object, one per line."),
    "number": ("7", "must be a JSON object, one per line."),
    "twice": ('{"a": 1, "b": 2, "a": 3}', 'key "a" occurs twice.'),
    "twice within": ('{"a": {"b": 1, "b": 2}}', 'key "b" occurs twice.'),
    "deep": ('{"a": ' + "[" * 101 + "]" * 101 + "}", DEEP),
    "very deep": ('{"a": ' + "[" * 100_000 + "]" * 100_000 + "}", DEEP),
    "deep and open": ("[" * 100_000, DEEP),
    "many digits": ('{"a": ' + "9" * 5000 + "}", "a whole number has too many digits."),
    "half a pair": ('{"a": "\\ud83d"}', "\\ud83d is half of a pair of surrogates, which is no character."),
    "half a pair in a name": ('{"\\udc00": 1}', "\\udc00 is half of a pair of surrogates, which is no character."),
}


@pytest.mark.parametrize("case", BAD_JSONL)
def test_bad_jsonl(case, tmp_path):
    content, sentence = BAD_JSONL[case]
    assert complaint(tmp_path, "t.jsonl", f'{{"a": 1}}\n\n{content}\n') == f"t.jsonl line 3: {sentence}"


@pytest.mark.parametrize("limit", [1000, 100_000])
def test_depth_of_json_whatever_the_recursion_limit_is(limit):
    """Libraries raise it; what is too deep for us must not depend on that."""
    before = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(limit)
        for deep in ("[" * 101 + "]" * 101, "[" * 1000, '{"a":' * 1000, '["\\\\",' * 101):
            with pytest.raises(ValueError, match="nested deeper than 100 levels"):
                parsed_json(deep)
        for flat in ("[" * 100 + "]" * 100, "[" + "[]," * 200 + "[]]", '"' + "[" * 200 + '"', '["\\\\\\"' + "[" * 200 + '"]'):
            assert parsed_json(flat) == json.loads(flat)
    finally:
        sys.setrecursionlimit(before)


def test_svmlight(tmp_path):
    found = whole(tmp_path, "t.svm", "# made by hand\n\ufeff1 2:0.5 1:-1e3 # first\n\n2 qid:7 3:1\n-1\n")
    assert list(found.lines) == [2, 4, 5]
    assert found.columns == {"label": ["1", "2", "-1"]}
    np.testing.assert_array_equal(found.matrix.toarray(), [[-1000, 0.5, 0], [0, 0, 1], [0, 0, 0]])
    assert whole(tmp_path, "t.svm", "1 2147483647:1\n").matrix.shape == (1, 2**31 - 1)


BAD_SVMLIGHT = {
    "1 1:2 3:1 1:5": "column 1 occurs twice",
    "1 0:2": "columns are counted from 1 to 2147483647",
    "1 2147483648:2": "columns are counted from 1 to 2147483647",
    f"1 {'9' * 5000}:2": "columns are counted from 1 to 2147483647",
    "1 -3:2": '"-3" is no column number',
    "1 three:2": '"three" is no column number',
    "1 ٣:2": '"٣" is no column number',
    "1 3": '"3" has no colon',
    "1 3:": "could not convert string to float: ''",
    "1 3:nan": 'the value "nan" of column 3 is not a finite number',
    "1 3:1e400": 'the value "1e400" of column 3 is not a finite number',
    "3:1 4:1": "the label is missing",
}


@pytest.mark.parametrize("line", BAD_SVMLIGHT)
def test_bad_svmlight(line, tmp_path):
    sentence = f"t.svm line 2: must be svmlight, label column:value ...: {BAD_SVMLIGHT[line]}."
    assert complaint(tmp_path, "t.svm", f"1 1:1\n{line}\n") == sentence


def parquet_bytes(table, **options):
    file = io.BytesIO()
    pyarrow.parquet.write_table(table, file, **options)
    return file.getvalue()


def test_bad_parquet(tmp_path):
    good = parquet_bytes(pa.table({"a": [1, 2], "b": ["x", "y"]}))
    assert whole(tmp_path, "t.parquet", good).columns == {"a": [1, 2], "b": ["x", "y"]}
    for n_bytes in (3, 4, 8, len(good) // 2, len(good) - 1):
        assert complaint(tmp_path, "t.parquet", good[:n_bytes]).startswith("t.parquet is not a parquet file: ")
    assert complaint(tmp_path, "t.parquet", gzip.compress(good)) == "t.parquet is packed by gzip: its name must end in .gz."
    assert complaint(tmp_path, "t.parquet", parquet_bytes(pa.table({"a": pa.array([], pa.int8())}))) == "t.parquet has no rows."
    file = io.BytesIO()
    pyarrow.parquet.ParquetWriter(file, pa.schema([("a", pa.int8())])).close()  # not a single row group
    assert complaint(tmp_path, "t.parquet", file.getvalue()) == "t.parquet has no rows."
    assert complaint(tmp_path, "t.parquet", parquet_bytes(pa.table({}))) == "t.parquet has no rows."
    twice = pa.Table.from_arrays([pa.array([1]), pa.array([2])], names=["a", "a"])
    assert complaint(tmp_path, "t.parquet", parquet_bytes(twice)) == 't.parquet: column "a" occurs twice.'
    odd = parquet_bytes(pa.table({"abcd": [1]}), store_schema=False).replace(b"abcd", b"\xed\xff\xff\xff")
    assert complaint(tmp_path, "t.parquet", odd).startswith("t.parquet is not a parquet file: 'utf-8' codec")
    far = pa.table({"when": pa.array([2**62], pa.timestamp("us"))})
    assert complaint(tmp_path, "t.parquet", parquet_bytes(far)).startswith('t.parquet: column "when" cannot be read: ')


def test_damaged_parquet_is_one_sentence(tmp_path):
    rng = random.Random(0)
    table = pa.table({"a": list(range(200)), "b": [f"text {n}" for n in range(200)], "c": [[n] for n in range(200)]})
    good = parquet_bytes(table)
    refused = []
    for _ in range(150):
        bad = bytearray(good)
        for _ in range(3):
            bad[rng.randrange(len(bad))] = rng.randrange(256)
        try:
            whole(tmp_path, "t.parquet", bytes(bad))
        except InputError as error:
            refused.append(str(error))
    assert len(refused) > 20
    assert not any("\n" in sentence for sentence in refused)


PACKERS = {".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}


@pytest.fixture(params=[*PACKERS, ".zst"])
def packed(request):
    """An ending and what packs bytes so."""
    if request.param == ".zst":
        return ".zst", pytest.importorskip("zstandard").compress
    return request.param, PACKERS[request.param]


def test_packed_files(packed, tmp_path):
    ending, pack = packed
    rng = random.Random(0)
    rows = [f"{n},{rng.random()}\n" for n in range(30_000)]
    columns = {"n": [str(n) for n in range(30_000)], "x": [row.strip().partition(",")[2] for row in rows]}
    parts = [pack("".join(part).encode()) for part in (["n,x\n"], rows[:9], rows[9:])]
    assert whole(tmp_path, f"t.csv{ending}", b"".join(parts)).columns == columns
    content = b"".join(parts)
    for n_bytes in (len(content) - 3, len(content) // 2, len(parts[0]) - 3, 5):
        assert complaint(tmp_path, f"t.csv{ending}", content[:n_bytes]).startswith(f"t.csv{ending} cannot be unpacked: ")
    assert "cannot be unpacked" in complaint(tmp_path, f"t.csv{ending}", b"n,x\n1,2\n")


def test_names_that_tell_a_wrong_kind(packed, tmp_path):
    ending, pack = packed
    text = b"a,b\n1,2\n"
    for name in ("t.csv", "t.tsv", "t.jsonl", "t.svm"):
        assert re.fullmatch(rf"{name} is packed by \w+: its name must end in {ending}\.", complaint(tmp_path, name, pack(text)))
    assert complaint(tmp_path, f"t.csv{ending}", pack(pack(text))).endswith(": unpack it once first.")


def test_other_files(tmp_path):
    parquet = parquet_bytes(pa.table({"a": [1]}))
    assert complaint(tmp_path, "t.csv", parquet) == "t.csv is a parquet file: name it .parquet."
    assert complaint(tmp_path, "t.csv", b"PK\x03\x04 workbook") == "t.csv is a spreadsheet or a zip archive: save it as csv."
    assert complaint(tmp_path, "t.csv", b"\xd0\xcf\x11\xe0 workbook") == "t.csv is a spreadsheet: save it as csv."
    assert whole(tmp_path, "t.csv", "PAR1,BZh9\n1,2\n").columns == {"PAR1": ["1"], "BZh9": ["2"]}


def test_batches_are_of_the_asked_size(tmp_path):
    for name, line in (("t.csv", "1,2\n"), ("t.jsonl", '{"a": 1}\n'), ("t.svm", "1 1:2\n")):
        path = tmp_path / name
        path.write_text(("a,b\n" if name == "t.csv" else "") + line * 10)
        assert [len(batch) for batch in reading.read_batches(str(path), 4)] == [4, 4, 2]


def mutated(rng, seed):
    """A seed with some bytes changed, dropped, doubled or put in from those that mean something."""
    data = bytearray(seed)
    for _ in range(rng.randint(0, 6)):
        place = rng.randrange(len(data) + 1)
        rest = rng.choice([data[place:], data[place + 1 :], data[max(place - 3, 0) :]])
        data = data[:place] + rng.choice([b"", b'"', b",", b"\r", b"\n", b"\0", b":", b"\xff", b"\xef\xbb\xbf", b"[", b"9"]) + rest
    return bytes(data)


@pytest.mark.parametrize("kind", fuzz_readers.SEEDS)
def test_only_sentences_come_out(kind):
    """What the fuzzer looks for, without its eyes."""
    rng = random.Random(0)
    for _ in range(1500):
        fuzz_readers.read(kind, bytes([rng.randrange(256)]) + mutated(rng, rng.choice(fuzz_readers.SEEDS[kind])))


def test_names_from_a_file_cannot_break_the_sentence_or_command_the_terminal(tmp_path):
    """Found by the fuzzer: a quoted name may hold line ends, and escape sequences as well."""
    sentence = complaint(tmp_path, "t.csv", '"b\n\x1b[31m","b\n\x1b[31m"\n1,2\n')
    assert sentence == 't.csv line 3: column "b\\n\\x1b[31m" occurs twice.'
