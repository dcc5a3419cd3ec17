from sentence_transformers import SentenceTransformer
from sklearn.cluster import AgglomerativeClustering

TEXTS = [
    "A man is eating pasta.",
    "A man is eating bread.",
    "A monkey is playing drums.",
    "Someone in a gorilla costume is playing a set of drums.",
    "A cheetah is running behind its prey.",
    "A cheetah chases its prey across a field.",
]

rows = SentenceTransformer("all-MiniLM-L6-v2").encode(TEXTS, normalize_embeddings=True)
labels = AgglomerativeClustering(n_clusters=3).fit_predict(rows)
for cluster in dict.fromkeys(labels.tolist()):
    print([text for text, label in zip(TEXTS, labels, strict=True) if label == cluster])
