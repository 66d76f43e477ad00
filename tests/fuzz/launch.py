"""Run a harness with the core built for fuzzing in place of the installed one: launch.py CORE HARNESS ARGUMENTS."""

import importlib.util
import runpy
import sys


def load_core(path: str) -> None:
    spec = importlib.util.spec_from_file_location("rankplane._core", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["rankplane._core"] = module
    spec.loader.exec_module(module)


if __name__ == "__main__":
    load_core(sys.argv[1])
    sys.argv = sys.argv[2:]
    runpy.run_path(sys.argv[0], run_name="__main__")
