"""Makes the records of what a judgement has found."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

from moorage.domain.host_states import HostState
from moorage.domain.violations import Cause, CauseKind, MemberCondition, Violation
from moorage.domain.words import first_of
from moorage.engine.state.host_states import closings

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from moorage.domain.ensembles import Ensemble
    from moorage.domain.member_names import MemberName
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.compliance.judgement import Judgement, PolicyViolation

_NAMED_HOSTS: Final = 3
"""Hosts named in a cause."""
_SHOWN: Final = 3
"""Texts of one policy that are joined to one."""


def violations_of(
    snapshot: Snapshot, ensemble: Ensemble, found: Judgement, cause: Cause
) -> Iterator[Violation]:
    """What was found as records without id and time: one for each policy and member."""
    new = partial(Violation, id="", ensemble_id=ensemble.id, ensemble=ensemble.name, since=0)
    servers = {one.name: one.server_id for one in ensemble.members}
    by_policy: dict[str, list[PolicyViolation]] = {}
    for one in found.violations:
        by_policy.setdefault(one.policy, []).append(one)
    types = {one.name: one.type for one in ensemble.policies}
    off = sorted(found.out_of_service)
    if cause.kind is CauseKind.HOST:
        cause = _of_hosts(snapshot, found, cause, off)
    for name, some in by_policy.items():
        yield new(
            project_id=ensemble.project_id,
            cause=cause,
            policy=name,
            type=types[name],
            required=some[0].required,
            members=tuple(dict.fromkeys(member for one in some for member in one.members)),
            amount=sum(one.amount for one in some),
            text=_joined(one.text for one in some),
            named=any(one.named for one in some),
        )
    for member in off:
        server = servers[member]
        lost = found.out_of_service[member] is HostState.DOWN
        yield new(
            project_id=ensemble.project_of(member.role),
            cause=_of_hosts(snapshot, found, replace(cause, kind=CauseKind.HOST), (member,)),
            policy=None,
            type=(MemberCondition.LOST if lost else MemberCondition.AT_RISK).value,
            required=True,
            members=(member,),
            amount=1,
            text=f"{member}: its host is out of service",
            named=False,
            servers={} if server is None else {str(member): server},
        )


def _of_hosts(
    snapshot: Snapshot, found: Judgement, cause: Cause, members: Sequence[MemberName]
) -> Cause:
    """The cause with the hosts of members out of service, and why these are."""
    rows = list(dict.fromkeys(found.hosts[one] for one in members))[:_NAMED_HOSTS]
    at = snapshot.locations.hosts
    hosts = [int(at[row]) for row in rows if at[row] >= 0]
    reasons = dict.fromkeys(
        one.why.value
        for row in hosts
        for one in closings(snapshot, row)
        if one.why.state is not HostState.OPEN
    )
    return replace(
        cause, hosts=tuple(snapshot.names[row] for row in hosts), reason=", ".join(reasons)
    )


def _joined(texts: Iterable[str]) -> str:
    """The texts of one policy as one, of bounded length."""
    return "; ".join(first_of(list(dict.fromkeys(texts)), _SHOWN))
