from sentence_transformers import SentenceTransformer, util

SENTENCES = [
    "The cat sits outside",
    "A man is playing guitar",
    "I love pasta",
    "The new movie is awesome",
    "The cat plays in the garden",
    "A woman watches TV",
    "The new movie is so great",
    "Do you like pizza?",
]

model = SentenceTransformer("all-MiniLM-L6-v2")
for score, one, other in util.paraphrase_mining(model, SENTENCES)[:2]:
    print(f"{score:.2f}  {SENTENCES[one]} / {SENTENCES[other]}")
