"""Regular expressions of Python as those of JavaScript, with its flag ``u``."""

from __future__ import annotations

import re

__all__ = ["javascript_pattern"]

_WORD = r"\p{L}\p{N}_"
_BOUNDARY = f"(?:(?<=[{_WORD}])(?![{_WORD}])|(?<![{_WORD}])(?=[{_WORD}]))"
_OUTSIDE = {"w": f"[{_WORD}]", "W": f"[^{_WORD}]", "d": r"\p{Nd}", "b": _BOUNDARY}
_WITHIN = {"w": _WORD, "d": r"\p{Nd}"}  # a class in brackets
_ESCAPED = frozenset(r"^$\.*+?()[]{}|/sSnrtux")  # escapes that both have
_TOKEN = re.compile(r"\\.|\(\?P<|\(\?i:|\(|\)|\[\^?|\]|.", re.DOTALL)


def javascript_pattern(pattern: str) -> str:
    r"""Return an expression of Python for JavaScript, whose classes know ASCII only. ``(?i:`` becomes both cases.

    >>> print(javascript_pattern(r"(?P<word>\w+)\ (?i:ab|[c])"))
    (?<word>[\p{L}\p{N}_]+) (?:[aA][bB]|[cC])
    """
    made, groups, is_class = list[str](), list[bool](), False  # of each open group: whether case counts not in it
    for token in _TOKEN.findall(pattern):
        ignores_case = any(groups)
        if token[0] == "\\":
            known = (_WITHIN if is_class else _OUTSIDE).get(token[1])
            is_kept = token[1] in _ESCAPED or (is_class and token[1] == "-")
            made.append(known or (token if is_kept else token[1]))
        elif is_class:
            is_class = token != "]"
            made.append(token + token.swapcase() if ignores_case and token.isalpha() else token)
        elif token[0] == "[":
            is_class = True
            made.append(token)
        elif token[0] == "(":
            groups.append(token == "(?i:")
            made.append({"(?P<": "(?<", "(?i:": "(?:"}.get(token, token))
        elif token == ")":
            groups.pop()
            made.append(token)
        else:
            made.append(f"[{token}{token.swapcase()}]" if ignores_case and token.isalpha() else token)
    return "".join(made)
