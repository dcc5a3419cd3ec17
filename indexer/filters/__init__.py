"""The one filter grammar: text is parsed (parse.py, grammar.py) into a tree, which defines its meaning (tree.py)."""
