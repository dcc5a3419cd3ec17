"""The map of a collection: a place in two dimensions for every document, and names for its regions."""
