"""Coverage-guided fuzzing of the model loader: a sentence that names the file, or a model that answers without a crash.

    .venv/bin/python tests/fuzz/fuzz_modelfile.py -max_total_time=60

The checksum is made right before every try: it guards against accidents, and would stop a fuzzer at the door. Half of the
mutations change the tree of the header by its structure, since bytes that are no JSON any more teach little.
"""

import inspect
import os
import random
import struct
import sys
import tempfile
import warnings
from pathlib import Path
from types import ModuleType

import numpy as np

try:
    import atheris
except ImportError:  # the checks below run without it
    atheris = None

sys.path.insert(0, str(Path(__file__).parents[1]))

import forging
from rankplane import modelfile
from rankplane.modelfile import codecs, compact, container, sklearn_codecs, values

SEEDS = Path(__file__).parents[1] / "models"
TEXTS = ["", "great phone", "was best superb awful", "très grand, unknown words! \ud800"]
ROWS = np.random.default_rng(0).standard_normal((3, 4))
MAX_SIZE = 2**17


def try_all(model: object) -> None:
    """Whatever the model can do, on texts and on numbers; errors are fine, crashes are not."""
    for method in ("transform", "predict", "predict_proba", "get_feature_names_out"):
        for rows in (TEXTS, ROWS):
            try:
                getattr(model, method)(*([] if method.startswith("get") else [rows]))
            except SystemError:  # Python's word for a broken extension
                raise
            except Exception:
                continue


def one_input(data: bytes) -> None:
    if data.startswith(container.MAGIC) and len(data) >= container.ALIGNMENT:
        *_, n_header, _ = container.PREAMBLE.unpack_from(data)
        body = data[container.ALIGNMENT :]
        data = forging.seal(body, min(n_header, container.padded(len(body))))
    with tempfile.NamedTemporaryFile(suffix=".rankplane") as file, np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        file.write(data)
        file.flush()
        try:
            model = modelfile.load_model(file.name)
        except ValueError as error:
            if os.path.basename(file.name) not in str(error):
                raise
            return
        except ImportError:  # of a word segmenter that is not installed
            return
        try_all(model)


def change(data: bytes, max_size: int, seed: int) -> bytes:
    chance = random.Random(seed)
    if chance.random() < 0.5:
        try:
            header, arrays = forging.unpack(data)
            changed = forging.pack(forging.mutate(header, chance), arrays)
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError, struct.error):
            changed = data
        if changed != data and len(changed) <= max_size:
            return changed
    return bytes(atheris.Mutate(data, max_size))


def instrument(module: ModuleType) -> None:
    """Count the branches of a module's functions. Not at its import: a package installed in place has a loader of its own."""
    for owner in [module, *(value for value in vars(module).values() if inspect.isclass(value))]:
        for function in vars(owner).values():
            if inspect.isfunction(function) and function.__module__ == module.__name__:
                atheris.instrument_func(function)


def main() -> None:
    if atheris is None:
        raise SystemExit("Fuzzing needs atheris: pip install atheris.")
    for module in (modelfile, codecs, compact, container, sklearn_codecs, values):
        instrument(module)
    has_folder = any(not argument.startswith("-") for argument in sys.argv[1:])  # for what is found; the seeds stay as they are
    arguments = [*sys.argv, *([] if has_folder else [tempfile.mkdtemp()]), str(SEEDS)]
    atheris.Setup([*arguments, f"-max_len={MAX_SIZE}"], one_input, custom_mutator=change)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
