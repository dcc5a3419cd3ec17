"""The public paths of what `likewise.adapters` holds."""
