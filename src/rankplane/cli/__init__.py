"""The command ``rankplane``."""

from rankplane.cli.app import main

__all__ = ["main"]
