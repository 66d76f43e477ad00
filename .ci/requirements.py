"""Print what the named sets of requirements in pyproject.toml hold, one per line, for `pip install -r`.

The set `build` is what the build itself needs; `build-tools`, known once that is installed, is cmake and ninja where this machine
lacks them; `run` is what the package needs. Any other name is an extra, which may hold another one as `rankplane[name]`.
"""

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

PROJECT = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))


def requirements(name: str) -> Iterator[Any]:
    if name == "build":
        yield from PROJECT["build-system"]["requires"]
    elif name == "build-tools":
        from scikit_build_core.build import get_requires_for_build_editable

        yield from get_requires_for_build_editable({})
    elif name == "run":
        yield from PROJECT["project"]["dependencies"]
    else:
        for requirement in PROJECT["project"]["optional-dependencies"][name]:
            own = re.fullmatch(rf"{PROJECT['project']['name']}\[(.+)\]", requirement)
            yield from requirements(own[1]) if own else [requirement]


for name in sys.argv[1:]:
    print("\n".join(requirements(name)))
