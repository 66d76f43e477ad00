"""Run every fuzzer for its share of the time; what `make fuzz` calls.

A fuzzer is a harness of this folder (fuzz_*.py, with atheris) or a program of the build (fuzz_* under tests/core). Inputs that
reached something new are kept in build/fuzz/NAME and are where the next run begins. An input that ends in a crash stays in
build/fuzz/crashes, and the command that repeats it is printed.
"""

import argparse
import importlib.util
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# Python leaks on purpose. What is too large is refused, as a machine with little memory would.
SANITIZER_OPTIONS = {
    "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=256",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


@dataclass
class Fuzzer:
    name: str
    command: list[str]
    environment: dict[str, str] = field(default_factory=dict)


def find_fuzzers(build: Path) -> Iterator[Fuzzer]:
    for program in sorted((build / "tests" / "core").glob("fuzz_*")):
        if os.access(program, os.X_OK) and program.is_file():
            yield Fuzzer(program.name, [str(program)], dict(SANITIZER_OPTIONS))
    core = next(build.glob("_core*.so"))
    environment = SANITIZER_OPTIONS | {"LD_PRELOAD": runtime_of(core)}
    for harness in sorted(Path(__file__).parent.glob("fuzz_*.py")):
        yield Fuzzer(harness.stem, [sys.executable, str(ROOT / "tests/fuzz/launch.py"), str(core), str(harness)], dict(environment))


def runtime_of(core: Path) -> str:
    """What must be loaded before Python: a core built by Clang reports to the fuzzer, one built by GCC brings its own sanitizer."""
    needed = subprocess.run(["ldd", str(core)], check=True, capture_output=True, text=True).stdout
    # The sanitizer looks for what throws exceptions when it starts.
    own = re.findall(r"(?:libasan|libstdc\+\+)\S* => (\S+)", needed)
    if any("libasan" in library for library in own):
        return " ".join(sorted(own))
    spec = importlib.util.find_spec("atheris")
    assert spec is not None
    assert spec.origin is not None
    return str(Path(spec.origin).parents[1] / "asan_with_fuzzer.so")


def run(fuzzer: Fuzzer, seconds: int, seed: int, folder: Path) -> bool:
    """Whether it ended well."""
    inputs, crashes = folder / fuzzer.name, folder / "crashes"
    inputs.mkdir(parents=True, exist_ok=True)
    crashes.mkdir(exist_ok=True)
    prefix = f"{crashes / fuzzer.name}-"
    limits = [f"-seed={seed}", f"-max_total_time={seconds}", "-timeout=60", "-rss_limit_mb=4096", "-max_len=5000", "-len_control=0"]
    limits += ["-print_final_stats=1", "-print_funcs=0", f"-artifact_prefix={prefix}"]
    before = set(crashes.iterdir())
    log = folder / f"{fuzzer.name}.log"
    with log.open("w", encoding="utf-8") as out:
        code = subprocess.run(
            [*fuzzer.command, *limits, str(inputs)], env=os.environ | fuzzer.environment, stdout=out, stderr=out, cwd=ROOT
        ).returncode
    text = log.read_text(encoding="utf-8", errors="replace")
    if code == 0:
        print(f"{fuzzer.name}: {summary_of(text)}", flush=True)
        return True
    print(text[-6000:])
    print(f"{fuzzer.name}: failed with code {code}; the whole log is {log}")
    for crash in sorted(set(crashes.iterdir()) - before):
        settings = " ".join(f"{name}={shlex.quote(value)}" for name, value in fuzzer.environment.items())
        print(f"to repeat it:\n  {settings} {shlex.join([*fuzzer.command, str(crash)])}", flush=True)
    return False


def summary_of(log: str) -> str:
    """Executions, coverage and inputs, from the last lines of a fuzzer."""
    runs = re.findall(r"Done (\d+) runs in (\d+) second|(\d+) runs, ", log)
    covered = re.findall(r"cov: (\d+) ft: (\d+) corp: (\d+)", log)
    if not runs:
        return "done"
    n_runs = runs[-1][0] or runs[-1][2]
    places = f", {covered[-1][0]} places covered, {covered[-1][2]} inputs kept" if covered else ""
    return f"{n_runs} runs{places}, no crash"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=60, help="for all fuzzers together")
    parser.add_argument("--build", type=Path, required=True, help="the folder of a build with RANKPLANE_FUZZ")
    parser.add_argument("--only", default="", help="only fuzzers whose name holds this")
    parser.add_argument("--seed", type=int, default=0, help="of the inputs that are tried; 0 takes others every time")
    options = parser.parse_args()
    fuzzers = [fuzzer for fuzzer in find_fuzzers(options.build.resolve()) if options.only in fuzzer.name]
    if not fuzzers:
        parser.error(f"--only must be part of the name of a fuzzer. Got {options.only!r}.")
    share = max(1, options.seconds // len(fuzzers))
    results = [run(fuzzer, share, options.seed, options.build.resolve().parent) for fuzzer in fuzzers]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
