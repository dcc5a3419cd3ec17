"""A plan is followed: candidates are ranked by cosines, words or both until the best are certain."""
