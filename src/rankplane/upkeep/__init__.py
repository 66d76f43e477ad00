"""Looking after trained models: what they are, how two of them compare, new probabilities from new rows."""
