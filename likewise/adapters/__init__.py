"""likewise as a vector store of other frameworks: one file per framework, each an extra of the same name.

Nothing is imported here, so that each adapter needs its own framework alone.
"""
