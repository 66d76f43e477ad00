"""Programs to compare with, one file each, and this package among them.

A competitor is a module with

    VARIANTS             name -> options of run
    missing()            why it cannot run here, in a few words, or None
    run(data, ...)       Predictions of the test rows, settings chosen without them

and with whatever timing its fit takes: ``liblinear.train``, ``textbook.solve``.
"""

from importlib import import_module


def not_installed(module: str, package: str) -> str | None:
    """Why a competitor cannot run here, if its module is not there."""
    try:
        import_module(module)
    except ImportError:
        return f"{package} is not installed"
    return None
