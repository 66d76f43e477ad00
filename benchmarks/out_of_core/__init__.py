"""Training from disk against training in memory: ``python -m benchmarks.out_of_core.run``, drawn by ``distributed.page``."""
