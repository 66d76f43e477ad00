"""Fits over workers: how many rounds they take and what these move, and seconds on a cluster.

``python -m benchmarks.distributed.rounds`` counts, so it can run anywhere; ``python -m benchmarks.distributed.cluster`` takes times
and needs idle cores. ``python -m benchmarks.distributed.page`` draws ``docs/scale.md``.
"""
