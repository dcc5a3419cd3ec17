"""An address becomes an engine, and its slots are made, replaced and copied."""
