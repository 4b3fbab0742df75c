"""Access rules by Blazar's names: readers list, members lease, operators do the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.leases.routes import ROUTES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http.access_rules import Access, RulesConfig
    from moorage.usecases.ports import Caller

_READERS: Final = frozenset({"reader", "member", "manager"})
_MEMBERS: Final = frozenset({"member", "manager"})
_READ: Final = frozenset({"blazar:leases:get", "blazar:floatingips:get"})
_LEASE: Final = frozenset({"blazar:leases:post", "blazar:leases:put", "blazar:leases:delete"})
_ALIASES: Final = {
    "blazar_admin": "role:admin or role:service",
    "blazar_member": "role:member or role:manager or rule:blazar_admin",
    "blazar_reader": "role:reader or rule:blazar_member",
}
OWN: Final = tuple(dict.fromkeys(route.rule for route in ROUTES))
"""Every rule, in the order of the routes."""


def _default(rule: str) -> str:
    if rule in _READ:
        return "rule:blazar_reader"
    return "rule:blazar_member" if rule in _LEASE else "rule:blazar_admin"


KNOWN: Final[Mapping[str, str]] = {**_ALIASES, **{rule: _default(rule) for rule in OWN}}
"""Every rule, and every name that rules refer to, with its check by default."""


def by_default(rule: str, caller: Caller, project: str | None) -> bool:  # noqa: ARG001 - one signature for all rules
    """Apply a rule's default, without oslo.policy."""
    if rule in _READ:
        return caller.operator or bool(caller.roles & _READERS)
    if rule in _LEASE:
        return caller.operator or bool(caller.roles & _MEMBERS)
    return caller.operator


def access_by(config: RulesConfig, others: Mapping[str, str]) -> Access:
    """The access rules of these settings; `others` are the rules of other dialects in the file.

    Raises:
        InvalidDescription: the policy file cannot be used; see `policy_file`.
    """
    if config.file is None:
        return by_default
    from moorage.http.policy_file import access_from_file  # noqa: PLC0415 - oslo.policy only where a file asks for it

    return access_from_file(config.file, by_default, {**others, **KNOWN})
