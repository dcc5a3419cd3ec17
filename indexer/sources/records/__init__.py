"""Files with many documents: JSON, JSON lines and tables, one document per record."""
