"""The cache of vectors of this user: its file, and the encoder that asks it first."""
