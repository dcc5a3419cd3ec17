"""One question to several indexes."""
