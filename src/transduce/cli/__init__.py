"""The command line: a thin skin. Each verb parses, calls one public function and prints.

Results go to stdout, progress and warnings to stderr. Exit 0: good; 1: a problem with a value, a file or data,
told in one line; 2: an unknown verb or flag; 128 + n: stopped by signal n.
"""
