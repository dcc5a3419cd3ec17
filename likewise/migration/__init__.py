"""A change of the model: both indexes, what the new one lacks, and the switch."""
