"""One file per microversion, each a declared change; nothing but changes lives here.

A file's docstring says what the version brought, its `CHANGE` says what was different before. They
are found by scanning the package, so a new version is one new file.
"""

from __future__ import annotations

import importlib
import pkgutil
from typing import TYPE_CHECKING, Final

from moorage.http.microversion import Change, History

if TYPE_CHECKING:
    from collections.abc import Iterator


def _declared() -> Iterator[Change]:
    for module in pkgutil.iter_modules(__path__):
        change = importlib.import_module(f"{__name__}.{module.name}").CHANGE
        assert isinstance(change, Change), f"{module.name} declares no Change"
        yield change


HISTORY: Final = History(_declared())
"""Placement's history, 1.0 to the newest version declared here."""
