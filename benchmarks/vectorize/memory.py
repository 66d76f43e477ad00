"""Peak memory of fit_transform: python -m benchmarks.vectorize.memory --data FOLDER. Linux only.

The peak is that of the whole process, interpreter and libraries included, held against twice the size of text and
result. Each case runs in a process of its own.
"""

import argparse
import gc
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.common import Log
from lab.data import data_folder
from lab.memory import peak_bytes, reset_peak
from rankplane.text import TextVectorizer

CASES: dict[str, dict[str, Any]] = {
    "paper": {"preset": "paper"},
    "default": {},
    "unigrams": {"ngram_range": (1, 1)},
    "every pair": {"min_df": 1},
    "trigrams": {"ngram_range": (1, 3)},
    "char 1-4": {"analyzer": "char", "ngram_range": (1, 4)},
    "union": {"analyzer": {"word": (1, 2), "char_wb": (2, 5)}},
}
SOURCES = ("list", "column", "batches")


def read(path: Path, source: str) -> Any:
    if source == "batches":
        return (batch.column("text") for batch in pq.ParquetFile(path).iter_batches(5000, columns=["text"]))
    column = pq.read_table(path, columns=["text"])["text"]
    return column.to_pylist() if source == "list" else column


def measure(path: Path, case: str, source: str) -> dict[str, Any]:
    metadata = pq.ParquetFile(path).metadata
    texts = read(path, source)
    gc.collect()
    pa.default_memory_pool().release_unused()
    reset_peak()
    matrix = TextVectorizer(n_jobs=2, **CASES[case]).fit_transform(texts)
    n_peak = peak_bytes()
    n_result = matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    n_text = pq.read_table(path, columns=["text"])["text"].nbytes
    return {
        "data": path.stem,
        "task": f"memory: {case}",
        "source": source,
        "n_documents": metadata.num_rows,
        "text_bytes": n_text,
        "result_bytes": n_result,
        "peak_bytes": n_peak,
        "peak_over_text_and_result": round(n_peak / (n_text + n_result), 3),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        "benchmarks.vectorize.memory", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data")
    parser.add_argument("--sets", nargs="+", default=["tripadvisor_250k"])
    parser.add_argument("--one", nargs=2, metavar=("CASE", "SOURCE"), help="measure this in the running process")
    options = parser.parse_args(arguments)
    folder = data_folder(options.data)
    if folder is None:
        raise SystemExit("benchmarks: --data must be a folder of parquet files.")
    log = Log("vectorize")
    for name in options.sets:
        if options.one:
            print(json.dumps(measure(folder / f"{name}.parquet", *options.one)))
            continue
        for case in CASES:
            for source in SOURCES:
                command = [sys.executable, "-m", "benchmarks.vectorize.memory", "--data", str(folder)]
                command += ["--sets", name, "--one", case, source]
                line = subprocess.run(command, capture_output=True, text=True, check=True).stdout
                record = json.loads(line)
                log.write(**record)
                print(f"{name:18} {case:12} {source:8} {record['peak_over_text_and_result']:6.3f} x", flush=True)


if __name__ == "__main__":
    main()
