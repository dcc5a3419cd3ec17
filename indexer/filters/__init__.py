"""The one filter grammar: text is parsed (parse, grammar) into a tree, which says what it means (tree)."""
