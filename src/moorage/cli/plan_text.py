"""Plans in words: their moves in order, what they wait for, and the commands that make them."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING, Final

from moorage.cli.columns import pairs
from moorage.cli.output import fields, moment, short, stack, table
from moorage.domain.words import counted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import RenderableType

    from moorage.wire.plans import Move, Plan, PlanSummary

_VERSION: Final = "2.68"
"""Nova's microversion of the commands: from it on, nobody can force a server onto a host."""
_GIB: Final = 1024


def summary(plan: Plan) -> str:
    """A plan in one line: `drain h1: 3 moves, 6 GiB, the fewest possible`."""
    said = [f"{plan.kind} {plan.subject}: {counted(plan.move_count, 'move')}"]
    if plan.moves:
        said += [memory(plan.memory_mb), *_quality(plan)]
    if plan.unmoved:
        said.append(f"{counted(plan.unmoved_count, 'server')} cannot be moved")
    return ", ".join(said)


def memory(mib: int) -> str:
    """Memory in GiB, or MiB if it is less than one."""
    return f"{mib / _GIB:.3g} GiB" if mib >= _GIB else f"{mib} MiB"


def _quality(plan: Plan) -> Iterator[str]:
    """How good it is, as far as that is known."""
    if plan.optimal:
        yield "none costs less"
    elif plan.lower_bound:
        yield f"at least {plan.lower_bound} are needed"


def state_of(plan: PlanSummary) -> str:
    """Its state, with how far it is: `running, 2 of 5 moves done, 1 failed`."""
    if plan.state == "ready" or not plan.move_count:
        return plan.state
    said = [plan.state, f"{plan.done} of {counted(plan.move_count, 'move')} done"]
    if plan.failed:
        said.append(f"{plan.failed} failed")
    if plan.unmoved_count:
        said.append(f"{counted(plan.unmoved_count, 'server')} left where they are")
    return ", ".join(said)


def shown(plan: Plan, *, stored: bool = True) -> RenderableType:
    """All of a plan; without id and state where it is not stored."""
    head = fields(
        [
            ("id", plan.id if stored else None),
            ("kind", plan.kind),
            ("for", plan.subject),
            ("state", state_of(plan) if stored else None),
            *pairs(plan, "note?"),
            ("moves", _moves(plan)),
            ("memory", memory(plan.memory_mb) if plan.moves else None),
            ("by", moment(plan.by) if plan.by else None),
            ("limits", _limits(plan)),
            *((name.replace("_", " "), value) for name, value in plan.attributes.items()),
            ("made", f"{moment(plan.created_at)} by {plan.user_id or 'the service'}"),
        ]
    )
    parts: list[RenderableType] = [head]
    if plan.moves:
        columns = ["#", "server", "of", "from", "to", "how", "#memory", "after", "state"]
        parts += ["", table(columns, [_row(number, one) for number, one in _numbered(plan)])]
    if plan.unmoved:
        parts += ["", "cannot be moved:"]
        rows = [
            (short(one.server) if one.server else "-", one.host_name or "-", one.reason)
            for one in plan.unmoved
        ]
        parts.append(table(["server", "host", "why"], rows))
    return stack(*parts)


def _limits(plan: Plan) -> str:
    limits = plan.limits
    failures = counted(limits.failures, "failure")
    return f"{limits.parallel} at a time, {limits.per_host} per host, pauses at {failures}"


def _moves(plan: Plan) -> str:
    return " ".join([str(plan.move_count), *(f"({one})" for one in _quality(plan))])


def _numbered(plan: Plan) -> Iterator[tuple[int, Move]]:
    return enumerate(plan.moves, 1)


def _row(number: int, one: Move) -> Sequence[object]:
    state = f"{one.state}: {one.error}" if one.error else one.state
    after = ", ".join(str(each + 1) for each in one.after)
    return (
        number,
        short(one.server),
        whose(one),
        one.source_name,
        one.target_name,
        one.kind,
        memory(one.memory_mb),
        after or "-",
        state,
    )


def whose(one: Move) -> str:
    """Whose server it is: `shop web[1]`, or the beginning of its project."""
    return f"{one.ensemble} {one.member}" if one.member else f"project {one.project_id[:8]}"


def commands(plan: Plan) -> str:
    """Commands of the `openstack` client that make the moves which are left, in their order.

    Each waits for its end, so they may be run one after another as they stand.
    """
    lines = [f"# plan {plan.id}: {summary(plan)}"]
    for number, one in _numbered(plan):
        if one.state in {"done", "skipped"}:
            lines.append(f"# {number}: {one.server} is {one.state}")
            continue
        lines.append(f"# {number}: {whose(one)} from {one.source_name}{_after(one)}")
        lines += _move_commands(one)
    lines += [f"# not moved: {one.server or '-'}: {one.reason}" for one in plan.unmoved]
    return "".join(f"{line}\n" for line in lines)


def _after(one: Move) -> str:
    if not one.after:
        return ""
    return f", when {' and '.join(str(each + 1) for each in one.after)} {_are(one.after)} done"


def _are(some: Sequence[int]) -> str:
    return "is" if len(some) == 1 else "are"


def _move_commands(one: Move) -> Iterator[str]:
    words = ["openstack", "--os-compute-api-version", _VERSION, "server"]
    host = ["--host", one.target_name, "--wait", one.server]
    match one.kind:
        case "live":
            yield shlex.join([*words, "migrate", "--live-migration", *host])
        case "cold":
            yield shlex.join([*words, "migrate", *host])
            yield shlex.join(["openstack", "server", "migration", "confirm", one.server])
        case _:
            yield shlex.join([*words, "evacuate", *host])
