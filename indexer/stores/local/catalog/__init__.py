"""The catalog: its tables in SQLite, and the views of it that readers share."""
