"""The commands of this part, one file per command."""
