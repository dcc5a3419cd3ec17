"""Where an index is kept: the interface of stores, the rules that all follow, and two engines."""
