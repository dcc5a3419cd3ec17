import faiss
from sentence_transformers import SentenceTransformer

ASKED = [
    "How do I learn Python?",
    "What is the best way to cook rice?",
    "How can I lose weight quickly?",
    "Where can I buy cheap flights?",
]
NEW = ["What should I do to learn the Python language?", "How tall is Mount Everest?"]

model = SentenceTransformer("all-MiniLM-L6-v2")
index = faiss.IndexFlatIP(384)
index.add(model.encode(ASKED, normalize_embeddings=True))
scores, rows = index.search(model.encode(NEW, normalize_embeddings=True), 1)
for question, score, row in zip(NEW, scores[:, 0], rows[:, 0], strict=True):
    print(question, "->", ASKED[row] if score >= 0.6 else "new")
