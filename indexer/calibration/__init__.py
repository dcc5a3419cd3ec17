"""Facts measured on an index's own passages: its background of cosines, and how well words and meaning find them."""
