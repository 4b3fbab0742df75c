"""The access rules of the native API: one for each route, with oslo.policy defaults.

A rule is met by roles in a project. Whose things a caller then sees is the use cases' affair; a
rule by default for operators makes a caller who meets it an operator for that request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.native.access import MEMBERS, READERS, Access
from moorage.api.native.routes import CLOCK, FURTHER, ROUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http import access_rules
    from moorage.http.access_rules import RulesConfig
    from moorage.usecases.ports import Caller

_ALIASES: Final = {
    "moorage_operator": "role:admin or role:service",
    "moorage_member": "role:member or role:manager or rule:moorage_operator",
    "moorage_reader": "role:reader or rule:moorage_member",
}
_LEAST: Final[Mapping[str, Access]] = {
    **{route.rule: route.access for route in ROUTES if route.rule},
    **CLOCK,
    **FURTHER,
}

KNOWN: Final[Mapping[str, str]] = {
    **_ALIASES,
    **{rule: f"rule:moorage_{least.value}" for rule, least in _LEAST.items()},
}
"""Every rule, and every name that rules refer to, with its check by default."""


def by_default(rule: str, caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all rules
    """Apply a rule's default, without oslo.policy."""
    match _LEAST[rule]:
        case Access.READER:
            return caller.operator or bool(caller.roles & READERS)
        case Access.MEMBER:
            return caller.operator or bool(caller.roles & MEMBERS)
        case _:
            return caller.operator


def met(access: access_rules.Access, caller: Caller) -> dict[str, bool]:
    """Every rule, and whether the caller meets it."""
    scoped = caller.project_scoped
    return {rule: scoped and access(rule, caller, caller.project_id) for rule in _LEAST}


def access_by(config: RulesConfig, others: Mapping[str, str]) -> access_rules.Access:
    """The access rules of these settings; `others` are the rules of other dialects in the file.

    Raises:
        InvalidDescription: the policy file cannot be used; see `policy_file`.
    """
    if config.file is None:
        return by_default
    from moorage.http.policy_file import access_from_file  # noqa: PLC0415 - oslo.policy only where a file asks for it

    return access_from_file(config.file, by_default, {**others, **KNOWN})
