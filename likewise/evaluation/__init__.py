"""Evaluation: judgments and measures, comparison of models, and tuning."""
