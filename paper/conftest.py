"""All tests of the paper are of the merge tier; scripts/test also runs them where files here have changed."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent


@pytest.hookimpl(tryfirst=True)  # before -m deselects
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests below this folder, but those of the nightly tier."""
    for item in items:
        if HERE in item.path.parents and not item.get_closest_marker("slow"):
            item.add_marker(pytest.mark.merge)
