"""Model files as only intent would write them: any header, any arrays, and a checksum to match."""

import copy
import json
import random
import zlib
from typing import Any

from rankplane.modelfile import container

ODD_VALUES: list[Any] = [
    None, True, False, 0, 1, -1, 2, 7, 64, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**63 - 1, 2**63, 10**30, -(2**63),
    0.5, -0.0, 1e-320, 1e308, "", "a", "é", "\x00", "O", "<f4", "|u1", "M8[D]", "<U1000000000", "linear", "precomputed", "rbf",
    "poly", "mae", "filename", "drop", "passthrough", "utf-8", "rot13", "(a+)+$", "os.system", "__class__", "x" * 1000,
    [], {}, [[]], [1], ["a"], {"tuple": []}, {"tuple": [1, 1]}, {"tuple": [1, 10**12]}, {"set": [1]}, {"dict": []},
    {"dict": [[1, 2]]}, {"dict": [["a", 0], ["b", -5]]}, {"float": "nan"}, {"float": "inf"}, {"array": 0}, {"array": -1},
    {"array": 10**9}, {"strings": [0, 1], "dtype": "O"}, {"strings": [0, 0], "dtype": "<U3"}, {"objects": [1, "a", None]},
    {"objects": [], "shape": [0]}, {"csr": [0, 1, 2, 5]}, {"slice": [0, 10**9, 1]}, {"slice": [None, None, 0]},
    {"estimator": {"kind": "StandardScaler", "params": {}, "defaults": [], "fitted": {}}}, {"kind": "Pipeline", "steps": []},
]  # fmt: skip


def unpack(content: bytes) -> tuple[Any, bytes]:
    """The header and the bytes after it."""
    *_, n_header, _ = container.PREAMBLE.unpack_from(content)
    first = container.ALIGNMENT + n_header
    return json.loads(content[container.ALIGNMENT : first].decode("utf-8", "surrogatepass")), content[first:]


def pack(header: Any, arrays: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return seal(text.ljust(container.padded(len(text))) + arrays, container.padded(len(text)))


def seal(body: bytes, n_header: int) -> bytes:
    """The body under a preamble that is true of it."""
    whole = container.ALIGNMENT + len(body)
    start = container.PREAMBLE.pack(container.MAGIC, container.FORMAT, zlib.crc32(body), n_header, whole)
    return start.ljust(container.ALIGNMENT, b"\0") + body


def places(tree: Any) -> list[tuple[Any, Any]]:
    """Every (container, key) of a tree."""
    found: list[tuple[Any, Any]] = []
    stack = [tree]
    while stack:
        here = stack.pop()
        keys = here.keys() if isinstance(here, dict) else range(len(here)) if isinstance(here, list) else ()
        found += [(here, key) for key in keys]
        stack += [here[key] for key in keys]
    return found


def mutate(header: Any, chance: random.Random) -> Any:
    """A header with a few places changed: other values, values of other places, things lost, doubled, renamed or nested."""
    header = copy.deepcopy(header)
    for _ in range(chance.choice([1, 1, 1, 2, 3, 6])):
        spots = places(header.get("model") if chance.random() < 0.8 else header)
        if not spots:
            break
        here, key = chance.choice(spots)
        how = chance.random()
        if how < 0.45:
            here[key] = copy.deepcopy(chance.choice(ODD_VALUES))
        elif how < 0.65:
            other, other_key = chance.choice(spots)
            here[key] = copy.deepcopy(other[other_key])
        elif how < 0.75:
            del here[key]
        elif how < 0.85 and isinstance(here[key], int | float) and not isinstance(here[key], bool):
            here[key] += chance.choice([-1, 1, 63, -64, 0.5])
        elif how < 0.9 and isinstance(here, list):
            here.insert(key, copy.deepcopy(here[key]))
        elif how < 0.95 and isinstance(here, dict):
            here[chance.choice(["array", "strings", "csr", "kind", "surprise", "coef_", "_scaler"])] = here.pop(key)
        else:
            here[key] = chance.choice([[here[key]], {"tuple": [here[key]]}])
    if chance.random() < 0.03:  # last, since nothing else here would bear the depth
        here, key = chance.choice(places(header))
        for _ in range(chance.choice([100, 400])):
            here[key] = chance.choice([[here[key]], {"tuple": [here[key]]}])
    return header
