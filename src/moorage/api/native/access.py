"""Who may use a route: the table of access, beside the routes.

Whose things a caller sees is the use cases' affair; here only the role counts.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Forbidden

if TYPE_CHECKING:
    from moorage.usecases.ports import Caller


class Access(StrEnum):
    """The least that a caller needs."""

    ANYONE = "anyone"
    """No token at all."""
    READER = "reader"
    """A role in a project: reader, member or manager; or an operator."""
    MEMBER = "member"
    """Member or manager of a project, or an operator."""
    OPERATOR = "operator"
    """Role admin or service."""


READERS: Final = frozenset({"reader", "member", "manager"})
MEMBERS: Final = frozenset({"member", "manager"})


def allow(access: Access, caller: Caller) -> None:
    """Let the caller pass.

    Raises:
        Forbidden: the role is missing, or is no role in a project.
    """
    if access is not Access.ANYONE and not caller.project_scoped:
        raise Forbidden("this takes a token scoped to a project")
    allowed = (
        access is Access.ANYONE
        or caller.operator
        or (access is Access.READER and bool(caller.roles & READERS))
        or (access is Access.MEMBER and bool(caller.roles & MEMBERS))
    )
    if not allowed:
        raise Forbidden(f"this takes the role {access.value}")
