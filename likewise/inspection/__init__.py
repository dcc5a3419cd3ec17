"""Looking inside a model: its tokens and their vectors, what its files contain, and files and pictures of vectors."""
