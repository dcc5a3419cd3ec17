"""Static models: a vector for each token, and no transformer."""
