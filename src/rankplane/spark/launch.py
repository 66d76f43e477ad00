"""Runs a program in Spark's barrier mode: all tasks at the same time, which find each other and then talk directly.

Only data frames are used, so that it works over Spark Connect too. If a task fails, Spark starts all of them again.
"""

import json
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.sparse as sp
from pyspark import BarrierTaskContext
from pyspark.sql import DataFrame

from rankplane import modelfile
from rankplane.distributed.mesh import Door
from rankplane.distributed.program import Program, joined

FEATURES, LABEL, WEIGHT = "features", "label", "weight"  # columns of the frames that tasks read


def launch(program: Program, frame: DataFrame, n_workers: int) -> bytes:
    """Fit on the rows of a frame; returns a model file."""
    task = task_of(program, secrets.token_bytes(32))
    found = frame.repartition(n_workers).mapInArrow(task, "model binary", barrier=True).collect()
    return b"".join(row["model"] for row in found)


def task_of(program: Program, key: bytes) -> Callable[[Iterator[Any]], Iterator[Any]]:
    """What each task does with the batches of its partition. It yields the model in pieces on worker 0, nothing on the others."""

    def task(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        parts = [rows_of(batch) for batch in batches if batch.num_rows]
        context = BarrierTaskContext.get()
        rank = context.partitionId()
        host = context.getTaskInfos()[rank].address.rsplit(":", 1)[0]
        door = Door(host, key)
        addresses = [(str(host), int(port)) for host, port in map(json.loads, context.allGather(json.dumps(door.address)))]
        with door.connect(rank, addresses) as mesh:
            fitted = program.run([joined(parts)] if parts else [], mesh)
        if fitted is not None:
            whole = bytes_of(fitted)
            pieces = [whole[first : first + PIECE] for first in range(0, len(whole), PIECE)]
            for piece in pieces:
                yield pyarrow.RecordBatch.from_pydict({"model": pyarrow.array([piece], pyarrow.binary())})

    return task


PIECE = 1 << 26  # bytes in a row


def rows_of(batch: Any) -> tuple[Any, ...]:
    """Features, labels and weights of an Arrow batch."""
    columns = {name: batch.column(name) for name in batch.schema.names}
    weights = (columns[WEIGHT].to_numpy(zero_copy_only=False),) if WEIGHT in columns else ()
    return features_of(columns[FEATURES]), np.array(columns[LABEL].to_pylist()), *weights


def features_of(column: Any) -> Any:
    """Texts as a list; vectors, which are structs of a size, indices and values, as a matrix."""
    if not hasattr(column, "field"):
        return ["" if text is None else text for text in column.to_pylist()]
    sizes, indices, values = (column.field(name) for name in ("size", "indices", "values"))
    return matrix_of(sizes.to_numpy(), indices.to_pylist(), values.to_pylist())


def features_of_pandas(batch: Any) -> Any:
    """The same of a series of texts, or of a frame of vectors."""
    if batch.ndim == 1:
        return ["" if text is None else text for text in batch]
    return matrix_of(batch["size"].to_numpy(), batch["indices"], batch["values"])


def matrix_of(sizes: Any, indices: Any, values: Any) -> sp.csr_matrix:
    starts = np.cumsum([0, *map(len, indices)])
    data = np.concatenate([np.asarray(row, dtype=np.float64) for row in values])
    places = np.concatenate([np.asarray(row, dtype=np.int32) for row in indices])
    return sp.csr_matrix((data, places, starts), shape=(len(sizes), int(sizes.max(initial=0))))


def bytes_of(model: Any) -> bytes:
    """The model as a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.rankplane")
        modelfile.save_model(model, path)
        with open(path, "rb") as file:
            return file.read()


def model_of(content: bytes) -> Any:
    """The model of a file."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "model.rankplane")
        with open(path, "wb") as file:
            file.write(content)
        return modelfile.load_model(path)
