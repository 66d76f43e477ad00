"""Feed the readers of csv, tsv, jsonl and svmlight files with bytes that look for new paths: only InputError may come out.

``python tests/fuzz/fuzz_readers.py [options of libFuzzer]``, for one format only with ``--format=csv``; needs atheris.
"""

import inspect
import io
import os
import sys
import tempfile

try:
    import atheris
except ImportError:  # the functions below can be called without it
    atheris = None

from rankplane.inputs import batches, delimited, jsonl, packing, quick, reading, svmlight

ENCODINGS = (None, "latin-1", "utf-16", "utf-8-sig", "shift-jis", "utf-7")
DELIMITERS = (None, ";", "tab", "|", " ")
SEEDS = {
    "csv": [
        b'text,stars\ngood,5\n"bad, or ""so""\nit is",1\n',
        b"\xef\xbb\xbfa;b\r\n1;2\r\n",
        b'a,b\r1,2\r\r\n3,"x',
        "a,b\ntrès,1\n".encode("latin-1"),
        "a,b\n1,2\n".encode("utf-16"),
    ],
    "tsv": [b'a\tb\n1\t"x\ty"\n', b"a,b\n1,2\n", b'a\n\n""\n \n'],
    "jsonl": [
        b'{"a": 1, "b": [1.5e3, null, true]}\n\n{"a": NaN, "c": {"d": "\\ud83d\\ude00"}}\n',
        b'{"a": -Infinity, "a": 0}',
        b"[" * 200 + b"]" * 200,
        b'{"a": ' + b"7" * 4400 + b"}",
    ],
    "svmlight": [b"1 1:0.5 3:-1e-3 # note\n-1 qid:4 2:1\n", b"1 2147483647:1\n2 7:nan 7:1\n", b"\xef\xbb\xbf3\n"],
}
ENDINGS = {"csv": "csv", "tsv": "tsv", "jsonl": "jsonl", "svmlight": "svm"}


def check(batch: reading.Batch) -> None:
    """What the users of a batch rely on."""
    assert all(len(values) == len(batch) for values in batch.columns.values())
    assert list(batch.lines) == sorted(set(batch.lines))
    assert batch.matrix is None or batch.matrix.shape[0] == len(batch)


def read(kind: str, data: bytes) -> None:
    """The first byte chooses the options; batches are small, so that files have several."""
    if not data:
        return
    choice, content = data[0], data[1:]
    delimiter = DELIMITERS[choice % len(DELIMITERS)] if kind in ("csv", "tsv") else None
    # Mostly UTF-8: every encoding that is not is a path of its own through the same code.
    encoding = ENCODINGS[choice // 16 % len(ENCODINGS)] if choice >= 128 else None
    try:
        for batch in reading.text_batches(
            io.BufferedReader(io.BytesIO(content)),
            f"fuzz.{ENDINGS[kind]}",
            kind,
            reading.Reading(3, reading.Dialect(delimiter, encoding)),
        ):
            check(batch)
    except reading.InputError as error:
        sentence = str(error)
        assert "\n" not in sentence, sentence
        assert sentence.endswith((".", "?")), sentence


def one_csv(data: bytes) -> None:
    read("csv", data)


def one_tsv(data: bytes) -> None:
    read("tsv", data)


def one_jsonl(data: bytes) -> None:
    read("jsonl", data)


def one_svmlight(data: bytes) -> None:
    read("svmlight", data)


TARGETS = {"csv": one_csv, "tsv": one_tsv, "jsonl": one_jsonl, "svmlight": one_svmlight}


def one_input(data: bytes) -> None:
    """All formats, chosen by the first byte."""
    if data:
        list(TARGETS.values())[data[0] % len(TARGETS)](data[1:])


def write_seeds(folder: str, kind: str | None) -> None:
    for place, (name, seeds) in enumerate(SEEDS.items()):
        for number, seed in enumerate(seeds):
            for choice in (0, 1, 160):
                first = b"" if kind else bytes([place])
                if kind in (None, name):
                    with open(os.path.join(folder, f"{name}-{number}-{choice}"), "wb") as file:
                        file.write(first + bytes([choice]) + seed)


def main() -> None:
    if atheris is None:
        sys.exit("fuzz_readers.py needs atheris: pip install atheris")
    # Not at their import: a package installed in place has a loader of its own.
    for module in (batches, delimited, jsonl, packing, quick, reading, svmlight):
        for owner in [module, *(value for value in vars(module).values() if inspect.isclass(value))]:
            for function in vars(owner).values():
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    atheris.instrument_func(function)
    kinds = [argument.removeprefix("--format=") for argument in sys.argv if argument.startswith("--format=")]
    kind = kinds[0] if kinds else None
    arguments = [argument for argument in sys.argv if not argument.startswith("--format=")]
    with tempfile.TemporaryDirectory() as folder:
        write_seeds(folder, kind)
        atheris.Setup([*arguments, folder], TARGETS[kind] if kind else one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
