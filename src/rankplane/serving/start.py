"""The start of a server: what it needs is there, and nothing is imported that would start threads before workers are forked."""

import os
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec

from rankplane.serving.options import ServerOptions, ServingError, read_token

NEEDED = ("uvicorn", "starlette", "httptools", "uvloop")
# Requests are spread over processes; more threads would only take turns. Set before numpy starts them.
ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")


def serve(paths: Sequence[str], options: ServerOptions, token_file: str | None = None) -> None:
    """Serve the models of these files until a signal comes."""
    options = replace(options, token=read_token(token_file))
    options.check()
    if not hasattr(os, "fork"):
        raise ServingError("rankplane serve needs a system that can fork processes, such as Linux.")
    if missing := [name for name in NEEDED if find_spec(name) is None]:
        raise ServingError(f"rankplane serve needs {', '.join(missing)}: pip install 'rankplane[serve]'.")
    for name in ONE_THREAD:
        os.environ.setdefault(name, "1")
    from rankplane.serving.supervisor import Supervisor

    Supervisor(paths, options).run()
