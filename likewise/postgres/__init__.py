"""A database of PostgreSQL with pgvector as a store. Nothing else in the project knows psycopg."""
