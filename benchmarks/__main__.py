"""``python -m benchmarks``: a quick look on synthetic data. No files, no options, about two minutes; keeps nothing."""

from benchmarks.fit import memory, run, scaling

run.main(["--sets", "synthetic", "--rounds", "3", "--budget", "5", "--mord-limit", "10", "--no-save"])
scaling.main(["--quick", "--rounds", "3", "--no-save"])
memory.main(["--sets", "synthetic:40000x200000x8x80", "--no-save"])
