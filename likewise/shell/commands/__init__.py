"""The commands of `likewise`, one file per command."""
