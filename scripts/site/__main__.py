"""Write the source of the site: the pages of ``docs/`` and the generated reference.

Run as ``python scripts/site FOLDER``; ``scripts/docs`` then builds the site from the folder.
"""

from __future__ import annotations

import argparse
import shutil
import tomllib
from pathlib import Path

from command_line import command_line
from links import Links
from python_api import python_api, python_packages
from recipe_keys import recipe_keys

ROOT = Path(__file__).resolve().parents[2]
GENERATED = {
    "recipe-keys.md": recipe_keys,
    "command-line.md": command_line,
    "python-api.md": python_api,
    "python-packages.md": python_packages,
}


def main() -> None:
    """Write all pages to the folder that is given; what it had is removed."""
    parser = argparse.ArgumentParser(description="Write the source of the site to a folder.")
    parser.add_argument("folder", type=Path)
    folder: Path = parser.parse_args().folder
    if folder.exists():
        shutil.rmtree(folder)
    shutil.copytree(ROOT / "docs", folder)
    shutil.copy(Path(__file__).with_name("site.css"), folder)
    extra = tomllib.loads((ROOT / "zensical.toml").read_text(encoding="utf-8"))["project"]["extra"]
    links = Links(ROOT, extra["repository"], extra["generated"])
    for page in folder.rglob("*.md"):
        text = page.read_text(encoding="utf-8")
        page.write_text(links.of_the_site(text, page.relative_to(folder)), encoding="utf-8")
    for name, text_of in GENERATED.items():
        (folder / name).write_text(text_of(), encoding="utf-8")


if __name__ == "__main__":
    main()
