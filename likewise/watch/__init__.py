"""`likewise watch`: an index that follows its sources."""
