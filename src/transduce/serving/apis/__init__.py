"""The APIs, a module each. What a module defines as a subclass of ``Api`` is served and described."""
