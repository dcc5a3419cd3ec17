"""Values that filters compare: flattened metadata, its types, and the walk over a filter that writes SQL."""
