"""What ``benchmarks`` and ``experiments`` share: data sets, competitors, timers, result lines, measures and tables.

It imports neither of them, and they do not import each other.
"""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
