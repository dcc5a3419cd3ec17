"""What this machine computes with: device, precision, runtime and the cache folder of the user."""
