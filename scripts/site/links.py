"""Links of ``docs/`` to files outside it, which the site does not have."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# What has no links: blocks and spans of code. Then a link: its text, its file and its anchor.
CODE_OR_LINK = re.compile(
    r"^```.*?^```|`[^`\n]*`|\[(?P<text>(?:`[^`]*`|[^]`])*)\]\((?P<file>[^()#\s]*)(?P<anchor>#[^()\s]*)?\)",
    re.DOTALL | re.MULTILINE,
)


@dataclass(frozen=True)
class Links:
    """The links of the site. ``repository`` is the address of the files in the repository, empty if there is none.

    ``generated`` names the generated page that has what a file of the repository says, by the path of the file.
    """

    root: Path
    repository: str
    generated: Mapping[str, str]

    def of_the_site(self, text: str, page: Path) -> str:
        """Return the text of a page, of a path below ``docs``, with links to files outside as the site has them.

        Such a link leads to the generated page of the file or to the repository. Without an address of that it becomes
        plain text with the path.
        """
        return CODE_OR_LINK.sub(lambda match: self._of_the_site(match, page), text)

    def _of_the_site(self, match: re.Match[str], page: Path) -> str:
        name, text = match["file"], match["text"]
        if not name or re.match(r"\w+:", name):
            return match[0]
        path = os.path.normpath(Path("docs") / page.parent / name).replace(os.sep, "/")
        inside = path.startswith("docs/")
        if inside and not (self.root / path).is_dir():
            return match[0]
        if path in self.generated:
            above = "../" * len(page.parent.parts)
            return f"[{text}]({above}{self.generated[path]})"
        if self.repository:
            return f"[{text}]({self.repository.rstrip('/')}/{path}{match['anchor'] or ''})"
        return text if path in text else f"{text} (`{path}`)"
