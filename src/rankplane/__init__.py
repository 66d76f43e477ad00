"""Large-scale ordinal regression: ordered labels from sparse, high-dimensional data, one hyperplane per rank."""

from rankplane.estimators import NPSVOR, SVC, SVMOP, SVOR, SVR, Committee, RedSVM
from rankplane.search import CSearchCV

__all__ = ["NPSVOR", "SVC", "SVMOP", "SVOR", "SVR", "CSearchCV", "Committee", "RedSVM"]
__version__ = "0.1.0"
