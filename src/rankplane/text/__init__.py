"""From documents to a sparse matrix."""

from rankplane.text.vectorizer import TextVectorizer

__all__ = ["TextVectorizer"]
