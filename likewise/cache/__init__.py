"""The cache of vectors of this user: its file, and the encoders and workers that ask it first."""
