"""Who may use a route: what its rule takes by default, and the door.

Whose things a caller sees is the use cases' affair; here only the rule counts.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Forbidden

if TYPE_CHECKING:
    from moorage.http import access_rules
    from moorage.usecases.ports import Caller


class Access(StrEnum):
    """The least that a caller needs, unless a policy file says otherwise."""

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


def permit(judge: access_rules.Access, access: Access, rule: str, caller: Caller) -> Caller:
    """Let the caller pass; who meets an operators' rule acts as one in this request.

    Raises:
        Forbidden: the rule is not met, or the caller's roles are not roles in a project.
    """
    if access is Access.ANYONE:
        return caller
    if not caller.project_scoped:
        raise Forbidden("this takes a token scoped to a project")
    if not judge(rule, caller, caller.project_id):
        raise Forbidden(f"your roles do not meet the rule {rule}")
    return replace(caller, as_operator=True) if access is Access.OPERATOR else caller
