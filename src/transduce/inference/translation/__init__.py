"""Translating: lines, sentences, masks; reranking, word alignment, evaluation."""
