"""Tasks on documents: causal and masked language models, missing spans, images as pixels."""
