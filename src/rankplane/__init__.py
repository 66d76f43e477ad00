"""Large-scale ordinal regression: ordered labels from sparse, high-dimensional data, one hyperplane per rank."""

from rankplane.estimators import NPSVOR, SVC, SVMOP, SVOR, SVR, RedSVM

__all__ = ["NPSVOR", "SVC", "SVMOP", "SVOR", "SVR", "RedSVM"]
__version__ = "0.1.0"
