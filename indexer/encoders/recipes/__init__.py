"""The interface of an encoder, and the meaning of its vectors: the recipe, its model and its post-processing."""
