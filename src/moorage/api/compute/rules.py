"""Access rules by Nova's names: readers list, members create and delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.compute.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http.access_rules import Access, RulesConfig
    from moorage.usecases.ports import Caller

_READERS: Final = frozenset({"reader", "member", "manager"})
_MEMBERS: Final = frozenset({"member", "manager"})
_READ: Final = frozenset(route.rule for route in ROUTES if route.method == "GET")
_ALIASES: Final = {
    "compute_admin": "role:admin or role:service",
    "compute_member": "role:member or role:manager or rule:compute_admin",
    "compute_reader": "role:reader or rule:compute_member",
}

KNOWN: Final[Mapping[str, str]] = {
    **_ALIASES,
    **{
        route.rule: "rule:compute_reader" if route.rule in _READ else "rule:compute_member"
        for route in ROUTES
    },
}
"""Every rule, and every name that rules refer to, with its check by default."""


def by_default(rule: str, caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all rules
    """Apply a rule's default, without oslo.policy."""
    return caller.operator or bool(caller.roles & (_READERS if rule in _READ else _MEMBERS))


def access_by(config: RulesConfig, others: Mapping[str, str]) -> Access:
    """The access rules of these settings; `others` are the rules of other dialects in the file.

    Raises:
        InvalidDescription: the policy file cannot be used; see `policy_file`.
    """
    if config.file is None:
        return by_default
    from moorage.http.policy_file import access_from_file  # noqa: PLC0415 - oslo.policy only where a file asks for it

    return access_from_file(config.file, by_default, {**others, **KNOWN})
