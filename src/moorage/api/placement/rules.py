"""Which access rules are in force: the defaults, the newer defaults, or an operator's file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.api.placement.access import DEFAULT, NEW_DEFAULTS, Access
from moorage.api.placement.routes import TABLE

if TYPE_CHECKING:
    from moorage.api.placement.access import RulesConfig

RULES: Final = tuple(dict.fromkeys(rule for *_, rule in TABLE if rule))
"""Every rule, in the order of the routes."""


def access_by(config: RulesConfig) -> Access:
    """The access these settings ask for.

    Raises:
        InvalidDescription: the policy file cannot be used; see `policy_file`.
    """
    base = NEW_DEFAULTS if config.new_defaults else DEFAULT
    if config.file is None:
        return base
    from moorage.api.placement.policy_file import (  # noqa: PLC0415 - oslo.policy only where a file asks for it
        access_from_file,
        defaults,
    )

    return access_from_file(config.file, base, defaults(RULES, new=config.new_defaults))
