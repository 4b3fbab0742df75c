"""Notes on what Moorage does not compare: what only Nova can, and labels, which nobody does."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.wire.ensembles import Role


def host_check_note(name: str, checks: Sequence[str]) -> str:
    """The note on one flavor or role, with the keys of its extra specs or image properties."""
    return f"note: {name}: only Nova can check {', '.join(checks)}, on the host it has chosen"


def label_notes(keys: Iterable[str]) -> Iterator[str]:
    """The note on the labels of a listing of flavors, if there are any."""
    found = sorted(set(keys))
    if found:
        yield f"note: no filter of Nova reads {', '.join(found)}: kept, and they decide no place"


def notes_on_roles(roles: Iterable[Role]) -> Iterator[str]:
    """The notes on roles that need one."""
    for one in roles:
        if one.host_checks:
            yield host_check_note(one.name, one.host_checks)
