"""The language of texts, the languages that models read, and notes if the two differ."""
