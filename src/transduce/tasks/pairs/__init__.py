"""Tasks on pairs of texts: translation, mask-predict, parsing."""
