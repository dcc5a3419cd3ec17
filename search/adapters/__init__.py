"""The public import paths of the adapters in `likewise.adapters`."""
