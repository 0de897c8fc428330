"""Serving models over HTTP: batching across requests, the APIs of LibreTranslate and DeepL, a page.

Needs the extra ``serve``; ``batching`` alone needs nothing.
"""
