"""The entries of each file: readers run here or in a worker process, and give text and title."""
