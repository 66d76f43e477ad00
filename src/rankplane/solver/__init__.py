"""From data and tables to planes: what ranks demand, the solve, folds as lanes, kernels."""
