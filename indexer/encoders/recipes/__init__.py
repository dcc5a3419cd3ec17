"""The interface of an encoder, and the meaning of its vectors: the recipe and its model."""
