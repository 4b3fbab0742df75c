"""The generated pages: address -> the function that writes it.

moorage is imported when a page is made, and a part that is not there yet says so on its page.
"""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


def _absent(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is None
    except ModuleNotFoundError:
        return True


def policies() -> str:
    """Every policy type, from its file."""
    return "# Policies\n\nNo policy type is there yet.\n"


def commands() -> str:
    """Every command, from its parser."""
    return "# Commands\n\nNo command is there yet.\n"


def api() -> str:
    """Every route, from the OpenAPI description."""
    return "# HTTP API\n\nNo route is there yet.\n"


PAGES: Final[Mapping[str, Callable[[], str]]] = {
    "reference/policies.md": policies,
    "reference/cli.md": commands,
    "reference/api.md": api,
}
