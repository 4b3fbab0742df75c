"""The page of Placement's microversions, from their files."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from typing import TYPE_CHECKING, Final

from gen.markdown import code, table, text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from moorage.http.microversion import Change

ABOUT: Final = """\
Placement's API is served in versions {oldest} to {newest}, selected with the header
`OpenStack-API-Version: placement <version>`; without the header, {oldest}. Each version is one
declared change, and a *feature* is its name in the code. The OpenStack Placement API reference
describes each version in full; [differences](placement.md) are listed."""


def page() -> str:
    """One row per version."""
    from moorage.api.placement.versions import HISTORY

    about = ABOUT.format(oldest=HISTORY.minimum, newest=HISTORY.maximum)
    rows = ((str(change.version), code(change.feature), said) for change, said in declared())
    return "\n\n".join(
        ["# Placement microversions", about, table(("Version", "Feature", ""), rows)]
    )


def declared() -> Iterator[tuple[Change, str]]:
    """Every change with the sentence that opens its file."""
    from moorage.api.placement import versions

    found = []
    for module_info in pkgutil.iter_modules(versions.__path__):
        module = importlib.import_module(f"{versions.__name__}.{module_info.name}")
        sentence = (inspect.getdoc(module) or "").partition("\n")[0].partition(": ")[2]
        found.append((module.CHANGE, text(sentence[:1].upper() + sentence[1:])))
    yield from sorted(found, key=lambda one: one[0].version)
