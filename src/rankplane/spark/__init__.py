"""An estimator for Spark's pipelines, whose fit runs on the cluster's executors."""

try:
    import pyspark  # noqa: F401
except ImportError as error:
    raise ImportError("rankplane.spark needs Spark: pip install 'rankplane[spark]'.") from error

from rankplane.spark.estimator import OrdinalEstimator, OrdinalModel

__all__ = ["OrdinalEstimator", "OrdinalModel"]
