"""The fuzzer is a program of its own, not a module of tests."""

collect_ignore = ["fuzz.py", "fuzzing"]
