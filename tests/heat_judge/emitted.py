"""Whether a template that is written with its decision is, to Heat, the same and bound.

Heat's engine reads each generated template twice: as it was made, and as `moorage hot place --emit`
writes it. It must find the same servers, groups and other resources, and on each server a hint
that names the member which Moorage has placed for it.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections import Counter, defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import yaml
from tests.heat_judge import heat_side, moorage_side
from tests.heat_judge.case import Case
from tests.heat_judge.comparison import differences

from moorage.domain.errors import InvalidDescription
from moorage.domain.member_names import MemberName
from moorage.heat.compile import compile_template
from moorage.heat.numbers import to_boolean
from moorage.heat.placed_template import prepare
from moorage.heat.template_writer import TemplateDecision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tests.heat_judge.case import Expansion

    from moorage.heat.compile import CompiledTemplate

ENSEMBLE: Final = "b1d7b1d7-0000-4000-8000-000000000000"
ROOT: Final = "placed.yaml"
BELOW: Final = re.compile(r"parameter \S+ of .* is hidden")
HIDDEN: Final = ("hidden", "NoEcho")


@dataclass(frozen=True)
class Emitted:
    """A template that was written, and what its servers' hints must name."""

    label: str
    case: Case
    read: Expansion
    """The template before, as Heat reads it."""
    members: Mapping[str, frozenset[str]]
    """Path of a server -> the names of the members there; several in a scaling group."""
    unbound: bool
    """Whether it is said that some servers could not be bound."""


def emitted(cases: Sequence[Case]) -> Iterator[Emitted | str]:
    """Those of the cases that Heat accepts, written; or why one cannot be written."""
    for case, answer in zip(cases, heat_side.ask(cases), strict=True):
        heat = heat_side.read_answer(answer)
        if heat.outcome != "expanded" or heat.reason or not heat.servers:
            continue
        with tempfile.TemporaryDirectory() as scratch:
            try:
                yield _emitted(case, heat, Path(scratch))
            except InvalidDescription as error:
                yield error.message


def _emitted(case: Case, heat: Expansion, scratch: Path) -> Emitted:
    source = moorage_side.source(case, scratch)
    compiled = compile_template(source)
    places = {name: {"host": f"h-{i}"} for i, name in enumerate(compiled.keys)}
    prepared = prepare(source, compiled)
    if any(BELOW.search(note) for note in prepared.notes):
        raise InvalidDescription("a hidden parameter of a nested template has its value elsewhere")
    written = prepared.with_decision(TemplateDecision(ENSEMBLE, "6f0c", places))
    members: dict[str, set[str]] = defaultdict(set)
    for member, path in compiled.keys.items():
        members[moorage_side.starred(path, heat.scaling)].add(str(member))
    files = {ROOT: written.template, **written.files}
    return Emitted(
        case.label,
        Case(case.label, ROOT, files, parameters=_hidden(compiled, written.template)),
        heat,
        {path: frozenset(some) for path, some in members.items()},
        bool(written.notes),
    )


def _hidden(compiled: CompiledTemplate, template: str) -> Mapping[str, str]:
    """The values of hidden parameters, which are not written and must be given again."""
    document = yaml.safe_load(template)
    declared = document.get("parameters", document.get("Parameters")) or {}
    known = {**compiled.environment.defaults, **compiled.environment.parameters}
    found = {}
    for name, one in declared.items():
        if name in known and any(to_boolean(one[key]) for key in HIDDEN if key in one):
            value = known[name].plain()
            found[name] = json.dumps(value) if isinstance(value, list | dict) else str(value)
    return found


def faults(some: Sequence[Emitted]) -> Iterator[tuple[Emitted, tuple[str, ...]]]:
    """What Heat finds wrong in what was written: each with its faults, if there are any."""
    for one, answer in zip(some, heat_side.ask([one.case for one in some]), strict=True):
        yield one, tuple(_faults(one, answer))


def _faults(one: Emitted, answer: Mapping[str, Any]) -> Iterator[str]:
    read = heat_side.read_answer(answer)
    if read.outcome != "expanded":
        yield f"Heat refuses what was written: {read.reason}"
        return
    if read.reason:
        yield f"Heat would refuse what was written when it creates it: {read.reason}"
    yield from differences(one.read, read)
    for server in answer["servers"]:
        hint = server["hints"].get("moorage")
        if hint is None:
            if not one.unbound:
                yield f"{server['path']} has no hint, and no note says so"
        elif not _names(hint, one.members.get(server["path"], frozenset())):
            yield f"{server['path']} has the hint {hint}, its members are {one.members}"


def _names(hint: str, members: frozenset[str]) -> bool:
    """Whether the hint names one of the members, or the role of one."""
    ensemble, _, name = hint.partition("/")
    roles = {MemberName.parse(one).role for one in members}
    return ensemble == ENSEMBLE and (name in members or name in roles)


def check(cases: Sequence[Case]) -> Counter[str]:
    """Write and compare; prints what is wrong, and counts."""
    counts: Counter[str] = Counter()
    some = []
    for one in emitted(cases):
        if isinstance(one, str):
            counts["cannot be written"] += 1
        else:
            some.append(one)
    for one, found in faults(some):
        counts["wrong" if found else "not all bound" if one.unbound else "bound"] += 1
        if found:
            print(f"{one.label}: wrong", *found, sep="\n    ")
    return counts
