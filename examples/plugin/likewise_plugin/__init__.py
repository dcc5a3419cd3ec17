"""An example of what a package can give likewise."""
