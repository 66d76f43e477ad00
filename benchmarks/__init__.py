"""Every speed claim has a line here: a folder per task, a file per competitor, answers compared before times count.

``python -m benchmarks`` runs the quick synthetic set, which needs no files. The results are JSON lines under
``results/``, and ``python -m benchmarks.docs`` draws ``docs/benchmarks.md`` from them.
"""
