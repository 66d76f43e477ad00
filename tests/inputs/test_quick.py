"""pyarrow reads csv as our own reader does: the same cells, the same lines, the same sentences."""

import csv
import gzip
import io
import json
import subprocess
import sys

import pytest
from hypothesis import event, example, given, settings
from hypothesis import strategies as st
from test_reading import BAD_CSV, GOOD_CSV

from rankplane.inputs import quick
from rankplane.inputs.arrow import is_installed
from rankplane.inputs.batches import InputError
from rankplane.inputs.reading import Dialect, Reading, format_of, read_batches, text_batches
from rankplane.text.packed import Texts


def found_in(content, block, size=3, dialect=Dialect(), keep=None, name="t.csv"):  # noqa: B008
    """Rows and lines, or the complaint about them; by pyarrow in blocks that are so many bytes longer than the first line, which is
    looked for in the first block only, or for None by our own reader.
    """
    before = quick.SMALL, quick.BLOCK
    quick.SMALL, quick.BLOCK = (sys.maxsize, before[1]) if block is None else (0, content.find(b"\n") + 1 + block)
    rows, lines, readers = [], [], set()
    try:
        for batch in text_batches(io.BufferedReader(io.BytesIO(content)), name, format_of(name)[0], Reading(size, dialect, keep)):
            assert len(batch) <= size
            assert all(len(values) == len(batch) for values in batch.columns.values())
            rows += [dict(zip(batch.columns, row, strict=True)) for row in zip(*batch.columns.values(), strict=True)]
            lines += batch.lines
            readers |= {type(values) for values in batch.columns.values()}
    except InputError as error:
        return error.with_options, readers
    finally:
        quick.SMALL, quick.BLOCK = before
    return (rows, lines), readers


def check_same(content, block, **options):
    """Whether pyarrow read any of it."""
    expected, own = found_in(content, None, **options)
    found, readers = found_in(content, block, **options)
    assert found == expected
    assert Texts not in own
    return Texts in readers


@pytest.mark.parametrize("case", [*GOOD_CSV, *BAD_CSV])
@pytest.mark.parametrize("block", [1, 8, 1000])
def test_every_known_file(case, block):
    content = (GOOD_CSV.get(case) or BAD_CSV[case])[0]
    check_same(content.encode(), block)


PLAIN = {
    "quotes": ('a,b\n1,"x, ""y"""\n"","""z"""\n', 2),
    "line feeds within": ('a,b\n1,"x\n\ny"\n2,"\n"\n', 2),
    "crlf": ('a,b\r\n1,"x\r\ny"\r\n2,z\r\n', 2),
    "carriage returns within": ('a,b\n1,"x\ry"\n2,z\n', 2),
    "blank lines": ("a,b\n\n1,x\n\r\n\n2,y\n\n", 2),
    "no last line end": ('a,b\n1,x\n2,"y"', 2),
    "other letters": ("\ufeffä,b\n1,日本\n2,\U0001f600\n", 2),
    "empty cells": ("a,b\n,\n,\n", 2),
    "a header of several lines": ('"a\n",b\n1,x\n2,y\n', 2),
    "only a header": ("a,b\n", 0),
    "blanks around": ("a,b\n 1 ,  x\n2,  \n", 2),
    "odd words": ("a,b\nNA,null\nnan,#N/A\n", 2),
}


@pytest.mark.parametrize("case", PLAIN)
@pytest.mark.parametrize("block", [1, 2, 3, 5, 1000])
def test_plain_files_are_read_by_pyarrow(case, block):
    content, n_rows = PLAIN[case]
    (rows, _), readers = found_in(content.encode(), block + 5)
    assert (len(rows), readers) == (n_rows, {Texts})
    check_same(content.encode(), block)


ODD = {
    "quotes within": 'a,b\n1,x\n5" disk,y\n',
    "text after a quote": 'a,b\n1,x\n"2"2,y\n',
    "empty quotes and text": 'a,b\n1,x\n""2,y\n',
    "open quote": 'a,b\n1,x\n"2,y\n',
    "mark in the middle": "a,b\n1,x\n\ufeff2,y\n",
    "mark before a quote": 'a,b\n1,x\n\ufeff"2",y\n',
    "lone carriage return": "a,b\n1,x\n2\r3,y\n",
    "NUL": "a,b\n1,x\n2,\0\n",
    "blanks only": "a,b\n1,x\n  \n2,y\n",
    "the header again": "a,b\n1,x\na,b\n2,y\n",
    "a row like the header": "a,b\n1,x\na,c\n2,b\n",
    "fewer": "a,b\n1,x\n2\n",
    "more": "a,b\n1,x\n2,3,4\n",
}


@pytest.mark.parametrize("case", ODD)
@pytest.mark.parametrize("block", [1, 4, 9, 1000])
def test_whatever_is_odd_is_left_to_our_own_reader(case, block):
    check_same(ODD[case].encode(), block)
    rows = quick.layout(ODD[case].encode(), ",")
    # What is left is for pyarrow to find.
    assert rows is None or rows.n_bytes < len(ODD[case]) or case in ("blanks only", "fewer", "more") or "header" in case


CELLS = st.text(st.sampled_from('ab,;"\n\r\t é日\U0001f600\ufeff\0'), max_size=5)
NAMES = st.sampled_from(["a", "b", "c d", 'say "e"', "f,g", "h\ni", "é", ""])


@st.composite
def written(draw):
    """csv as some program writes it, and sometimes what somebody made of it by hand."""
    delimiter = draw(st.sampled_from(",,,;\t|"))
    names = draw(st.lists(NAMES, min_size=1, max_size=3, unique=True))
    cells = CELLS if draw(st.booleans()) else st.text(st.sampled_from('ab,"\n é'), max_size=5)
    rows = draw(st.lists(st.lists(cells, min_size=len(names), max_size=len(names)), max_size=8))
    text = io.StringIO(newline="")
    quoting = draw(st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]))
    csv.writer(text, delimiter=delimiter, lineterminator=draw(st.sampled_from(["\n", "\n", "\r\n"])), quoting=quoting).writerows(
        [names, *rows]
    )
    content = text.getvalue().encode()
    if draw(st.integers(0, 3)) == 3:
        place = draw(st.integers(0, len(content)))
        content = content[:place] + draw(st.sampled_from([b'"', b"\r", b"\xff", b"\0", b",", b"\n", b""])) + content[place + 1 :]
    return content, delimiter, names


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(written(), st.sampled_from([1, 2, 3, 7, 20, 10_000]), st.integers(1, 4), st.data())
@example((b'a,b\n"x\r",1\n', ",", ["a", "b"]), 1, 1, None)
def test_any_table(table, block, size, data):
    content, delimiter, names = table
    keep = None if data is None else data.draw(st.one_of(st.none(), st.lists(st.sampled_from(names))))
    given_delimiter = None if delimiter == "," else delimiter
    event(f"pyarrow: {check_same(content, block, size=size, dialect=Dialect(given_delimiter), keep=keep)}")


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(st.text(st.sampled_from('a,"\n\r'), max_size=30), st.sampled_from([1, 2, 5, 10_000]))
def test_any_text(text, block):
    check_same(f"a,b\n{text}".encode(), block)


@settings(max_examples=100, deadline=None, derandomize=True, database=None)
@given(st.binary(max_size=40), st.sampled_from([1, 3, 10_000]))
def test_any_bytes(content, block):
    check_same(b"a,b\n" + content, block)


@pytest.mark.parametrize("encoding", ["utf-8", "UTF8", "latin-1", "utf-8-sig", "utf-16"])
def test_encodings(encoding):
    content = 'a,b\n"très",1\nbon,2\n'.encode(encoding)
    is_quick = check_same(content, 10, dialect=Dialect(encoding=encoding))
    assert is_quick == (encoding in ("utf-8", "UTF8"))


def test_unread_columns_are_known_by_name():
    for block in (None, 4):
        content = io.BufferedReader(io.BytesIO(b"a,b,c\n1,2,3\n"))
        before, quick.SMALL = quick.SMALL, sys.maxsize if block is None else 0
        (batch,) = text_batches(content, "t.csv", "csv", Reading(keep=["b"]))
        quick.SMALL = before
        assert {name: list(values) for name, values in batch.columns.items()} == {"b": ["2"]}
        with pytest.raises(InputError, match=r't\.csv has no column "d": its columns are a, b, c\.'):
            batch.column("d", "t.csv")


@pytest.mark.parametrize("ending", ["", ".gz"])
def test_a_bad_line_late_in_a_file(ending, tmp_path):
    """The first megabytes are read by pyarrow."""
    rows = [f'{number},"good, or ""so"""\n' for number in range(300_000)]
    path = tmp_path / f"t.csv{ending}"
    for bad, sentence in (
        ("1,2,3\n", "line 250002: 3 fields, but the header has 2."),
        ('1,"2\n', "line 250002: a quote is opened whose closing quote on line 250003 has text after it; quotes within"),
        ("1,\udcff\n", "line 250002 is not UTF-8 text: name its encoding"),
    ):
        content = "".join(["a,b\n", *rows[:250_000], bad, *rows[250_000:]]).encode("utf-8", "surrogateescape")
        path.write_bytes(gzip.compress(content, 1) if ending else content)
        batches = []
        with pytest.raises(InputError) as error:
            batches.extend(read_batches(str(path)))
        assert str(error.value).startswith(f"{path} {sentence}")
        assert isinstance(batches[0].columns["a"], Texts)


def test_without_pyarrow(monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert not is_installed("pyarrow")
    content = 'a,b\n1,"x"\n'
    found, readers = found_in(content.encode(), 8)
    assert (json.dumps(found), readers) == ('[[{"a": "1", "b": "x"}], [2]]', {list})


def test_pyarrow_is_not_imported_for_small_files(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("a,b\n1,2\n")
    script = (
        f"import sys\nfrom rankplane.inputs.reading import read_all\nread_all({str(path)!r})\nprint('pyarrow.csv' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
