"""Large-scale ordinal regression: ordered labels from sparse, high-dimensional data, one hyperplane per rank."""

from rankplane.estimators import NPSVOR, SVC, SVMOP, SVOR, SVR, Committee, RedSVM
from rankplane.modelfile import load_model, save_model
from rankplane.search import CSearchCV

__all__ = ["NPSVOR", "SVC", "SVMOP", "SVOR", "SVR", "CSearchCV", "Committee", "RedSVM", "load_model", "save_model"]
__version__ = "0.1.0"
