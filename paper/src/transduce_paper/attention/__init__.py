"""Figures 3 to 5: attention heads of a trained model, probed and drawn."""
