"""From scores to predictions: rankers, probabilities, decisions, explanations."""
