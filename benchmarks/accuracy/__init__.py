"""How well everyone predicts: accuracy, MAE and MSE on the same test rows, each competitor with the decision that suits
the measure.
"""
