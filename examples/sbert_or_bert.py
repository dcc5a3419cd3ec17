"""Compare SBERT with pooled BERT: the same network, with the pooling it was trained for and with two others.

Prints:

    SBERT        same meaning 0.60, other meaning 0.01
    first token  same meaning 0.79, other meaning 0.54
    layer 2      same meaning 0.81, other meaning 0.61
"""

from likewise import load_encoder

ONE, SAME, OTHER = "My dog barks at night.", "The puppy is noisy after dark.", "Taxes are due in May."

for name, encoder in (
    ("SBERT", load_encoder("all-MiniLM-L6-v2")),
    ("first token", load_encoder("all-MiniLM-L6-v2", pooling="cls")),
    ("layer 2", load_encoder("all-MiniLM-L6-v2", pooling="mean", layers=2)),
):
    rows = encoder.encode([ONE, SAME, OTHER])
    print(f"{name:12} same meaning {rows[0] @ rows[1]:.2f}, other meaning {rows[0] @ rows[2]:.2f}")
