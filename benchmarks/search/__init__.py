"""Choosing C by cross-validation: the search of the paper, eleven values on five folds, and what probabilities cost."""
