"""Fits over the workers of a Dask cluster."""

try:
    import distributed  # noqa: F401
except ImportError as error:
    raise ImportError("rankplane.dask needs Dask: pip install 'rankplane[dask]'.") from error

from rankplane.dask.fitting import fit, train
from rankplane.dask.launch import SchedulerLostError

__all__ = ["SchedulerLostError", "fit", "train"]
