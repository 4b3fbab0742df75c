"""Access levels of routes, and the check of a caller.

Use cases decide whose records a caller sees; here only the rule counts.
"""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from shlex import quote
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.errors import Forbidden

if TYPE_CHECKING:
    from moorage.http import access_rules
    from moorage.usecases.ports import Caller


class Access(StrEnum):
    """The default access level of a rule, unless a policy file overrides it."""

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


_WHOSE: Final = MappingProxyType(
    {
        Access.READER: "reader, member or manager",
        Access.MEMBER: "member or manager",
        Access.OPERATOR: "admin or service",
    }
)
"""The roles that a level takes, unless a policy file overrides it."""


def unmet(rule: str, caller: Caller, whose: str) -> str:
    """What a caller is told whose roles do not meet a rule; `whose` are roles that would do."""
    has = ", ".join(sorted(caller.roles)) or "none"
    said = f"your roles ({has}) do not meet the rule {rule}: by default it takes {whose}"
    if not caller.believed:
        return said
    role = whose.partition(" ")[0].rstrip(",")
    return (
        f"{said}; with noauth2 a caller has the roles that its header X-Roles says:"
        f" moorage --project {quote(caller.project_id)} --role {role} ..."
    )


def permit(judge: access_rules.Access, access: Access, rule: str, caller: Caller) -> Caller:
    """Check the rule; a caller who meets an operators' rule acts as an operator in this request.

    Raises:
        Forbidden: the rule is not met, or the caller's roles are not roles in a project.
    """
    if access is Access.ANYONE:
        return caller
    if not caller.project_scoped:
        raise Forbidden("this takes a token scoped to a project")
    if not judge(rule, caller, caller.project_id):
        raise Forbidden(unmet(rule, caller, _WHOSE[access]))
    return replace(caller, as_operator=True) if access is Access.OPERATOR else caller
