"""The engine in C, which needs no torch: its library and what calls it."""
