"""Figures 3 to 5: what the heads of a trained model attend to, found and measured."""
