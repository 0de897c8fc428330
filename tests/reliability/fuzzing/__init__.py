"""A fuzzer of everything that transduce reads: files, folders, text, and its own command line.

    sources.py     valid files, created once
    formats/       the fuzzed inputs: one module per kind of file, text or command line
    damage.py      ways to damage a file; strange_values.py: invalid and extreme values
    cases.py       a case and its name, which determines all of it
    commands.py    runs a command line in this process and checks its output
    sandbox.py     limits on resources, files, programs and the network
    lanes.py       runs cases in child processes, one lane per processor
    report.py      results: a table, and failures by kind

``fuzz.py`` beside this folder is the command.
"""
