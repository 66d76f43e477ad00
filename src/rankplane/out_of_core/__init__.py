"""Fits from files that are larger than memory, in blocks on disk."""

from rankplane.out_of_core.fitting import fit

__all__ = ["fit"]
