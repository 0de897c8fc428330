"""The command line. Each verb parses its arguments, calls one public function and prints the result.

Results go to stdout, progress and warnings to stderr. Exit codes: 0 success; 1 a problem with a value, a file or data,
reported in one line; 2 an unknown verb or option; 128 + n stopped by signal n.
"""
