"""The note on what only Nova can compare with a host, and Moorage does not know."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.wire.ensembles import Role


def host_check_note(name: str, checks: Sequence[str]) -> str:
    """The note on one flavor or role, with the keys of its extra specs or image properties."""
    return f"note: {name}: only Nova can check {', '.join(checks)}, on the host it has chosen"


def notes_on_roles(roles: Iterable[Role]) -> Iterator[str]:
    """The notes on roles that need one."""
    for one in roles:
        if one.host_checks:
            yield host_check_note(one.name, one.host_checks)
