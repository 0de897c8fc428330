"""Using language models: continuing text, filling gaps, responding to prompts, rating responses."""
