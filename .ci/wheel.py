"""Build a source distribution and a wheel from it, check both, test the wheel as users will have it, and put both into dist/.

The arguments are those of pytest: which tests to run. Without any, a part of them that needs what only an installation can lack.
What has passed once is not done again: the source distribution holds all that the wheel and its tests are made of, so its digest
says whether something has changed.
"""

import email
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import zipfile
from collections.abc import Iterable
from contextlib import redirect_stdout
from pathlib import Path

from scikit_build_core.build import build_sdist

ROOT = Path(__file__).parents[1]
WORK, DIST = ROOT / "build" / "wheel", ROOT / "dist"
PASSED = WORK / "passed.json"
# What an installation could lack: the command, data files, the core, the version. The rest is the same code as in the tree.
TESTS = [
    "tests/cli/test_cli.py",
    "tests/report",
    "tests/modelfile/test_modelfile.py",
    "tests/test_estimators.py",
    "tests/test_versions.py",
]
# What users and type checkers miss only when it is too late.
NEEDED = {"rankplane/py.typed", "rankplane/_core.pyi", "rankplane/report/style.css", "rankplane/__main__.py"}
IS_ABI3 = sys.version_info >= (3, 12)  # before, the stable ABI lacks what nanobind needs
TAG, CORE = ("cp312-abi3", "_core.abi3.so") if IS_ABI3 else ("cp311-cp311", None)


def main(arguments: list[str]) -> None:
    tests = arguments or TESTS
    version = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
    WORK.mkdir(parents=True, exist_ok=True)
    os.chdir(ROOT)
    with redirect_stdout(None):
        sdist = WORK / build_sdist(str(WORK))
    state = {"sdist": hashlib.sha256(sdist.read_bytes()).hexdigest(), "python": sys.version, "tests": tests}
    if PASSED.exists() and json.loads(PASSED.read_text()) == state and (DIST / sdist.name).exists():
        say("nothing has changed since the last run: " + in_dist())
        return
    PASSED.unlink(missing_ok=True)
    check_sdist(sdist)
    unpack(sdist, WORK / "source")
    wheel = build_wheel(WORK / "source", WORK / "wheel")
    check_wheel(wheel, sdist, version)
    check("twine", "check", "--strict", str(wheel), str(sdist))
    if IS_ABI3:
        check("abi3audit", "--strict", str(wheel))
    test(wheel, sdist, version, tests)
    shutil.rmtree(DIST, ignore_errors=True)
    DIST.mkdir()
    for file in (wheel, sdist):
        shutil.copy2(file, DIST)
    PASSED.write_text(json.dumps(state))
    say("built, checked and tested: " + in_dist())


def say(sentence: str) -> None:
    print(sentence, flush=True)


def in_dist() -> str:
    return " ".join(f"dist/{path.name}" for path in sorted(DIST.iterdir()))


def run(*command: str, folder: Path = ROOT, **environment: str) -> None:
    done = subprocess.run(command, cwd=folder, env={**os.environ, **environment})
    if done.returncode:
        sys.exit(f"failed with exit code {done.returncode}: {' '.join(command)}")


def check(tool: str, *arguments: str) -> None:
    """Quiet unless it fails."""
    done = subprocess.run([sys.executable, "-m", tool, *arguments], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{done.stdout}{done.stderr}{tool} found faults")
    say(f"{tool}: fine")


def files_in_sdist(sdist: Path) -> dict[str, bytes]:
    """Contents by name, without the folder that all names share."""
    with tarfile.open(sdist) as archive:
        files = {member.name: archive.extractfile(member) for member in archive if not member.isdir()}
        top = sdist.name.removesuffix(".tar.gz") + "/"
        odd = [name for name, file in files.items() if file is None or not name.startswith(top)]
        expect(not odd, f"{sdist.name} may hold plain files in one folder only. It has {listed(odd)}.")
        return {name.split("/", 1)[1]: file.read() for name, file in files.items() if file is not None}


def check_sdist(sdist: Path) -> None:
    """What git has, and nothing that happens to lie about."""
    if not (ROOT / ".git").exists():
        say("no git checkout, so nothing tells which files belong into the source distribution")
        return
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    here, tracked = set(files_in_sdist(sdist)), {name for name in names.split("\0") if name} | {"PKG-INFO"}
    expect(here <= tracked, f"The source distribution holds files that git does not: {listed(here - tracked)}.")
    expect(tracked <= here, f"The source distribution lacks {listed(tracked - here)}.")


def unpack(sdist: Path, folder: Path) -> None:
    """Files that are the same keep their times, so that only what has changed is compiled again."""
    files = files_in_sdist(sdist)
    for name, content in files.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name not in files and not name.startswith("build/"):
            path.unlink()


def build_wheel(source: Path, folder: Path) -> Path:
    shutil.rmtree(folder, ignore_errors=True)
    pip = (sys.executable, "-m", "pip", "wheel", "-qq")
    run(*pip, "--no-deps", "--no-build-isolation", "--wheel-dir", str(folder), str(source))
    (wheel,) = folder.iterdir()
    return wheel


def files_in_wheel(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_wheel(wheel: Path, sdist: Path, version: str) -> None:
    """The package as in the sources, the compiled core, and what describes them."""
    expect(wheel.name.startswith(f"rankplane-{version}-{TAG}-"), f"The wheel must be of {version} and {TAG}. Got {wheel.name}.")
    files, about = files_in_wheel(wheel), f"rankplane-{version}.dist-info"
    sources = {
        name.removeprefix("src/"): content for name, content in files_in_sdist(sdist).items() if name.startswith("src/rankplane/")
    }
    described = {f"{about}/{name}" for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    extra, missing = files.keys() - sources.keys() - described, (sources.keys() | described | NEEDED) - files.keys()
    cores = {name for name in extra if name == f"rankplane/{CORE}" or (CORE is None and name.startswith("rankplane/_core."))}
    expect(len(cores) == 1, f"The wheel must hold one compiled core. It has {listed(cores)}.")
    expect(extra == cores, f"The wheel holds files that are no part of the package: {listed(extra - cores)}.")
    expect(not missing, f"The wheel lacks {listed(missing)}.")
    changed = {name for name, content in sources.items() if files[name] != content}
    expect(not changed, f"The wheel has other contents than the sources in {listed(changed)}.")
    metadata = email.message_from_bytes(files[f"{about}/METADATA"])
    for field, value in {"Version": version, "License-Expression": "BSD-3-Clause", "License-File": "LICENSE"}.items():
        expect(metadata[field] == value, f"{field} of the wheel must be {value}. Got {metadata[field]}.")


def test(wheel: Path, sdist: Path, version: str, tests: list[str]) -> None:
    """In a new environment and an unpacked source distribution, both outside the source tree."""
    with tempfile.TemporaryDirectory(prefix="rankplane-") as name:
        folder = Path(name).resolve()
        say("installing the wheel into a new environment")
        run(sys.executable, "-m", "venv", str(folder / "venv"))
        python = str(folder / "venv" / "bin" / "python")
        run(python, "-m", "pip", "install", "-qq", f"{wheel}[test]")
        shutil.unpack_archive(sdist, folder, filter="data")
        source, path = folder / f"rankplane-{version}", f"{Path(python).parent}{os.pathsep}{os.environ['PATH']}"
        installed = f"import rankplane._core as core; assert core.__file__.startswith({str(folder / 'venv')!r}), core.__file__"
        run(python, "-c", installed, folder=source)
        run(python, "-m", "pytest", "-q", *tests, folder=source, PATH=path)


def expect(holds: bool, sentence: str) -> None:
    if not holds:
        sys.exit(sentence)


def listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names)) or "none"


if __name__ == "__main__":
    main(sys.argv[1:])
