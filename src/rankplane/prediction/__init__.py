"""From scores to answers: rankers, probabilities, decisions, explanations."""
