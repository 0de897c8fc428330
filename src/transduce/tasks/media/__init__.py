"""Tasks from images or audio to text."""
