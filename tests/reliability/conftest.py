"""The worker of the fuzzing test is a program of its own, not a module of tests."""

collect_ignore = ["damage.py", "fuzz_worker.py"]
