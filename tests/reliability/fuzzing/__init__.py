"""A fuzzer of everything that transduce reads: files, folders, text, and its own command line.

    sources.py     good files, made once
    formats/       what is fuzzed: a module each for kinds of files, text or command lines
    damage.py      ways to damage a file; strange_values.py: values that nobody meant
    cases.py       a case and its name, from which all of it follows
    commands.py    a command line, run in this process and judged by what it printed
    sandbox.py     what a case may take and touch
    lanes.py       cases in children of their own, one lane of them for each processor
    report.py      what came out: a table, and failures by kind

``fuzz.py`` beside this folder is the command.
"""
