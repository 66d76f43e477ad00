"""What the first pass has found, in files, for a fit that goes on after it."""

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from rankplane import modelfile
from rankplane.inputs.fingerprints import Fingerprint
from rankplane.inputs.schema import Rows
from rankplane.out_of_core.folder import Folder
from rankplane.out_of_core.passes import Counted, save_arrays
from rankplane.text.packed import Part, Texts

ARRAYS, STEP, FACTS = "counted.npz", "features.rankplane", "counted.json"


def save(counted: Counted, folder: Folder) -> None:
    arrays = {"labels": counted.labels, "keys": counted.keys}
    for name, rows in (("test", counted.test), ("sample", counted.sample)):
        arrays |= {f"{name}_{key}": value for key, value in arrays_of(rows).items()}
    save_arrays(folder.path / ARRAYS, arrays)
    if counted.step is not None:
        modelfile.write_model(counted.step, str(folder.path / STEP))
    facts = {"n_columns": counted.n_columns, "n_entries": counted.n_entries, "notes": counted.notes}
    folder.write_json(FACTS, facts | {"fingerprints": [file.value for file in counted.fingerprint.files]})


def load(folder: Folder) -> Counted | None:
    """None if the first pass has not ended."""
    facts = folder.read_json(FACTS)
    if facts is None:
        return None
    with np.load(folder.path / ARRAYS) as file:
        arrays = dict(file)
    step: Any = modelfile.load_model(str(folder.path / STEP)) if (folder.path / STEP).exists() else None
    fingerprint = Fingerprint()
    for value in facts["fingerprints"]:
        fingerprint.of_file().value = value
    test, sample = (rows_of(arrays, name, facts["notes"]) for name in ("test", "sample"))
    return Counted(
        arrays["labels"], arrays["keys"], facts["n_columns"], facts["n_entries"], step, test, sample, facts["notes"], fingerprint
    )


def arrays_of(rows: Rows) -> dict[str, NDArray[Any]]:
    found: dict[str, NDArray[Any]] = {"labels": rows.labels, "groups": rows.groups}
    if isinstance(rows.features, Texts):
        parts = [part.filled().packed() for part in rows.features.parts]
        sizes = np.concatenate([np.zeros(0, dtype=np.int64), *(part.sizes for part in parts)])
        return found | {"text": np.concatenate([np.zeros(0, dtype=np.uint8), *(part.buffer for part in parts)]), "sizes": sizes}
    if len(rows.labels) == 0:
        return found
    X = rows.features
    return found | {"data": X.data, "indices": X.indices, "starts": X.indptr, "width": np.array(X.shape[1])}


def rows_of(arrays: dict[str, NDArray[Any]], name: str, notes: dict[str, Any]) -> Rows:
    own = {key.removeprefix(f"{name}_"): value for key, value in arrays.items() if key.startswith(f"{name}_")}
    features: Any = []
    if "text" in own:
        ends = np.cumsum(own["sizes"])
        features = Texts([Part(own["text"], ends - own["sizes"], ends)])
    elif "data" in own:
        shape = (len(own["starts"]) - 1, int(own["width"]))
        features = sp.csr_matrix((own["data"], own["indices"], own["starts"]), shape=shape)
    return Rows(features, own["labels"], own["groups"], notes)
