"""Printing: text, JSON, tables and progress, so that no control character reaches a terminal."""
