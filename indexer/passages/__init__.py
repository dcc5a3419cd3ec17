"""Documents in pieces: cutting, markup that readers do not see, and sentences."""
