"""The cases are run by run.py, not by pytest."""

collect_ignore_glob = ["*.py"]
