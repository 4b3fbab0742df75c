"""What Moorage makes of a case, in the form that is compared."""

from __future__ import annotations

import re
from collections import defaultdict
from typing import TYPE_CHECKING, Final

from tests.heat_judge.case import FLAVOR, GROUP, SERVER, Case, Expansion, Group, Server, as_hints

from moorage.client.hot_files import gather, read_file
from moorage.domain.describe import NOVA_SHORTHAND
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from moorage.domain.ensembles import PolicyStatement
    from moorage.domain.member_names import MemberName

FENCE: Final = "fence"
GROUPS: Final = frozenset(kind for kind, _ in NOVA_SHORTHAND.values())
BETWEEN: Final = re.compile(r"(.+\[\d+\])-(apart-from|beside)-(.+\[\d+\])", re.DOTALL)
"""What policies between two servers are called that come of a hint."""
HINTS: Final = {"apart-from": "different_host", "beside": "same_host"}


def expand(case: Case, heat: Expansion, scratch: Path) -> Expansion:
    """The case as Moorage reads it; members of Heat's scaling groups are called `*`.

    Policies of the template's metadata are left out: Heat knows nothing of them. Files are read by
    the client's own code, from the case's folder or written to `scratch`.
    """
    try:
        compiled = compile_template(source(case, scratch), may_be_empty=True)
    except InvalidDescription as error:
        where = "" if error.line is None else f" ({error.path}, line {error.line})"
        return Expansion("refused", f"{error.message}{where}")
    except Exception as error:  # noqa: BLE001 - any other error is a defect, and is counted
        return Expansion("broken", f"{type(error).__name__}: {error}")
    return _read(compiled, heat.scaling, heat.grouping)


def source(case: Case, scratch: Path) -> Source:
    """The case as the command line would send it.

    Raises:
        InvalidDescription: a file cannot be read.
    """
    folder = case.folder
    if folder is None:
        folder = scratch
        for name, text in case.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
    path = folder / case.template
    text = read_file(path)
    found = gather(path, text, [folder / name for name in case.environments])
    return Source(
        template=text,
        environment_files=found.environments,
        parameters=case.parameters,
        files=found.files,
    )


def _read(
    compiled: CompiledTemplate, scaling: frozenset[str], grouping: frozenset[str]
) -> Expansion:
    keys = {member: starred(key, scaling) for member, key in compiled.keys.items()}
    by_text = {str(member): member for member in keys}
    roles = {role.name: role for role in compiled.description.roles}
    zones: dict[MemberName, str] = {}
    hints: dict[MemberName, dict[str, object]] = defaultdict(dict)
    groups: list[Group] = []
    for policy in compiled.description.policies:
        members = _members(policy, keys)
        if not members:
            # Of a scaling group without members so far.
            continue
        between = BETWEEN.fullmatch(policy.name)
        if policy.type == FENCE and policy.name.startswith(("zone-", "host-")):
            kind, _, name = policy.name.partition("-")
            for member in members:
                zones[member] = zones.get(member, "") + (":" if kind == "host" else "") + name
        elif between is not None and between[1] in by_text and between[3] in by_text:
            hint, target = HINTS[between[2]], SERVER + keys[by_text[between[3]]]
            of = hints[by_text[between[1]]]
            found = of.setdefault(hint, [])
            assert isinstance(found, list)
            found.append(target)
        elif policy.type in GROUPS and (name := starred(policy.name, scaling)) in grouping:
            for member in members:
                hints[member]["group"] = GROUP + name
            kind = ("" if policy.weight is None else "soft-") + policy.type
            limit = policy.parameters.get("max_per_domain")
            inside = tuple(sorted(keys[member] for member in members))
            groups.append(Group(name, kind, limit if isinstance(limit, int) else None, inside))
    servers = [
        Server(
            key,
            roles[member.role].flavor or FLAVOR,
            zones.get(member, ""),
            as_hints(hints[member]),
        )
        for member, key in keys.items()
    ]
    return Expansion(
        "expanded",
        servers=tuple(sorted(servers, key=str)),
        groups=tuple(sorted(groups, key=str)),
        others=tuple(sorted(starred(str(one.path), scaling) for one in compiled.unplaced)),
    )


def _members(policy: PolicyStatement, every: Iterable[MemberName]) -> list[MemberName]:
    wanted = {one.role for one in policy.members} - {None}
    exact = {one.member for one in policy.members} - {None}
    return [one for one in every if one.role in wanted or one in exact]


def starred(path: str, scaling: frozenset[str]) -> str:
    """The path with `*` for the names of scaling groups' members."""
    steps: list[str] = []
    for step in path.split("/"):
        steps.append("*" if "/".join(steps) in scaling else step)
    return "/".join(steps)
