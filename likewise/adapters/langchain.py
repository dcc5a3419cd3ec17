"""likewise in LangChain. Extra `langchain`."""

from search.adapters.langchain import LikewiseRetriever as LikewiseRetriever
from search.adapters.langchain import LikewiseVectorStore as LikewiseVectorStore
