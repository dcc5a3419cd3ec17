from collections.abc import Sequence

from sentence_transformers import SentenceTransformer, util

TEXTS = [
    "Paris is the capital of France and lies on the Seine.",
    "The capital of Germany is Berlin.",
    "France has a capital with a famous tower.",
    "Bread goes stale as its starch crystallises.",
]


def shared_words(question: str, texts: Sequence[str]) -> list[float]:
    words = set(question.lower().split())
    return [float(len(words & set(text.lower().rstrip(".").split()))) for text in texts]


model = SentenceTransformer("all-MiniLM-L6-v2")
corpus = model.encode(TEXTS, convert_to_tensor=True)
question = "what is the capital of France"
hits = util.semantic_search(model.encode(question, convert_to_tensor=True), corpus, top_k=4)[0]
scores = shared_words(question, [TEXTS[hit["corpus_id"]] for hit in hits])
ranked = sorted(zip(scores, range(1, 5), hits, strict=True), key=lambda each: -each[0])
for score, rank, hit in ranked[:2]:
    print(f"{score:.0f} shared words, was rank {rank}: {TEXTS[hit['corpus_id']]}")
