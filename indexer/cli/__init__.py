"""The shell commands that write or look after an index. Only cli folders import click."""
