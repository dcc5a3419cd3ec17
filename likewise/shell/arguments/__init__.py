"""The meaning of a command line: its options, the index, and the configuration files."""
