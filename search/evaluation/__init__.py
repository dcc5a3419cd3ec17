"""Evaluation: judgments and measures, comparison of models, expectations, and tuning."""
