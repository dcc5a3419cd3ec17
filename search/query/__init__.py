"""A question, and what can be in it: conditions, a filter, examples, and newer documents first."""
