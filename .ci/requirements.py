"""Print what the named sets of requirements in pyproject.toml hold, one per line, for `pip install -r`.

The set `build` is what the build itself needs; `build-tools`, known once that is installed, is cmake and ninja where this machine
lacks them; `run` is what the package needs. Any other name is an extra.
"""

import sys
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))
for name in sys.argv[1:]:
    if name == "build":
        requirements = project["build-system"]["requires"]
    elif name == "build-tools":
        from scikit_build_core.build import get_requires_for_build_editable

        requirements = get_requires_for_build_editable({})
    elif name == "run":
        requirements = project["project"]["dependencies"]
    else:
        requirements = project["project"]["optional-dependencies"][name]
    print("\n".join(requirements))
