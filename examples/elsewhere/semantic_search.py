from sentence_transformers import SentenceTransformer, util

CORPUS = [
    "A man is eating food.",
    "A man is eating a piece of bread.",
    "The girl is carrying a baby.",
    "A man is riding a horse.",
    "A woman is playing violin.",
    "Two men pushed carts through the woods.",
    "A monkey is playing drums.",
    "A cheetah is running behind its prey.",
]
QUESTIONS = ["A man is eating pasta.", "Someone in a gorilla costume is playing a set of drums."]

model = SentenceTransformer("all-MiniLM-L6-v2")
corpus = model.encode(CORPUS, convert_to_tensor=True)
questions = model.encode(QUESTIONS, convert_to_tensor=True)
for question, hits in zip(QUESTIONS, util.semantic_search(questions, corpus, top_k=2), strict=True):
    print(question)
    for hit in hits:
        print(f"  {hit['score']:.2f}  {CORPUS[hit['corpus_id']]}")
