"""What callers may see of violations.

Operators see all. No tenant reads the names of hosts or domains, nor who of another project did
what; of another project's ensemble it sees the policies that bind its own members, and these.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from moorage.domain.disclosure import actor_seen_by, as_seen_by
from moorage.policies.levels import members_text
from moorage.usecases.shared.role_access import sees_role

if TYPE_CHECKING:
    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.domain.violations import Cause, Violation
    from moorage.usecases.ports import Caller


def violation_seen_by(
    caller: Caller, ensemble: Ensemble | None, one: Violation
) -> Violation | None:
    """A violation as the caller may see it; None: not at all."""
    if caller.operator:
        return one
    members, named = one.members, one.named
    if one.project_id != caller.project_id:
        named = True  # it may speak of members of others
        if one.policy is None or ensemble is None or not _binds(ensemble, one.policy, caller):
            return None
        members = tuple(name for name in members if sees_role(caller, ensemble, name.role))
    text = one.text
    if one.policy is not None and one.members and named:
        text = text_for_tenants(one.policy, members, f"others do not meet policy {one.policy}")
    return replace(
        one,
        members=members,
        text=text,
        named=False,
        cause=_cause_seen(one.cause, caller),
        ended_by=one.ended_by and _cause_seen(one.ended_by, caller),
    )


def _cause_seen(cause: Cause, caller: Caller) -> Cause:
    return replace(cause, actor=actor_seen_by(cause.actor, caller.project_id))


def _binds(ensemble: Ensemble, policy: str, caller: Caller) -> bool:
    """Whether the caller's project takes part, and a policy binds members of it."""
    if not ensemble.is_joined_by(caller.project_id):
        return False
    return any(one.name == policy for one in as_seen_by(ensemble, caller.project_id).policies)


def text_for_tenants(policy: str, members: tuple[MemberName, ...], text: str) -> str:
    """A violation's text for tenants: those about members name hosts and domains."""
    return f"{members_text(members)} do not meet policy {policy}" if members else text
