"""What turns plane scores into probabilities best: calibrators, planes, folds and ways to choose C, compared on test
rows.
"""
