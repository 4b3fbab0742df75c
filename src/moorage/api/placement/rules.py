"""Access rules in force: the defaults, the newer defaults, or an operator's file.

With the reference's old defaults, a rule that replaced `role:admin` is met by `role:admin` too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.placement.access import DEFAULT, NEW_DEFAULTS, USAGES
from moorage.api.placement.routes import TABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.http.access_rules import Access, RulesConfig

RULES: Final = tuple(dict.fromkeys(rule for *_, rule in TABLE if rule))
"""Every rule, in the order of the routes."""

_RESHAPE: Final = "placement:reshaper:reshape"
_ALIASES: Final = {
    "admin_api": "role:admin",
    "service_api": "role:service",
    "admin_or_service_api": "role:admin or role:service",
    "project_reader_api": "role:reader and project_id:%(project_id)s",
    "admin_or_project_reader_or_service_api": (
        "role:admin or rule:project_reader_api or role:service"
    ),
}
_ONCE_ADMIN: Final = _ALIASES.keys() - {"admin_api"}


def defaults(*, new: bool) -> dict[str, str]:
    """The default check string of every rule, and of every name that rules refer to."""
    aliases = {
        name: check if new or name not in _ONCE_ADMIN else f"({check}) or role:admin"
        for name, check in _ALIASES.items()
    }
    own = dict.fromkeys(RULES, "rule:admin_or_service_api")
    own[USAGES] = "rule:admin_or_project_reader_or_service_api"
    own[_RESHAPE] = "rule:service_api"
    return aliases | own


def access_by(config: RulesConfig, others: Mapping[str, str]) -> Access:
    """The access rules of these settings; `others` are the rules of other dialects in the file.

    Raises:
        InvalidDescription: the policy file cannot be used; see `policy_file`.
    """
    base = NEW_DEFAULTS if config.new_defaults else DEFAULT
    if config.file is None:
        return base
    from moorage.http.policy_file import access_from_file  # noqa: PLC0415 - oslo.policy only where a file asks for it

    known = {**others, **defaults(new=config.new_defaults)}
    return access_from_file(config.file, base, known, about_projects={USAGES})
