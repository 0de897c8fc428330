"""Regular expressions that are compiled when they are used first: a program uses few of those that it imports."""

from __future__ import annotations

import re
from functools import cached_property
from typing import Any, cast

__all__ = ["compiled_on_use"]


class _Pattern:
    """Has what a compiled pattern has."""

    def __init__(self, pattern: str, flags: re.RegexFlag) -> None:
        self._written = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(*self._written)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # of a copy that is not made yet, for instance
            raise AttributeError(name)
        value = getattr(self._compiled, name)
        setattr(self, name, value)  # found at once from now on
        return value


def compiled_on_use(pattern: str, flags: re.RegexFlag = re.NOFLAG) -> re.Pattern[str]:
    """Return a pattern as ``re.compile`` does, which is compiled when one of its methods is asked for.

    The functions of ``re`` do not take it.

    >>> compiled_on_use("a+").sub("b", "caat")
    'cbt'
    """
    return cast("re.Pattern[str]", _Pattern(pattern, flags))
