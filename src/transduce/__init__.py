"""The system of "Attention Is All You Need": raw text in, a trained Transformer and its translations out."""
