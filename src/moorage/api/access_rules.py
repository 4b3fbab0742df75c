"""The access rules of all dialects: what one policy file may name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from moorage.api.compute import rules as compute_rules
from moorage.api.leases import rules as lease_rules
from moorage.api.native import rules as native_rules
from moorage.api.placement import rules as placement_rules

if TYPE_CHECKING:
    from collections.abc import Mapping


def known_rules(*, new_defaults: bool) -> Mapping[str, str]:
    """Every rule of every dialect, served or not, with its check by default.

    With `new_defaults` those of the Placement API are as with `enforce_new_defaults`.
    """
    return {
        **placement_rules.defaults(new=new_defaults),
        **native_rules.KNOWN,
        **lease_rules.KNOWN,
        **compute_rules.KNOWN,
    }
