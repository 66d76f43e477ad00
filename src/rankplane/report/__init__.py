"""A model and how it does on some rows, as one page that needs nothing else: no script, no network, light and dark."""

from rankplane.report.page import make_report, write_report

__all__ = ["make_report", "write_report"]
