"""Reads violations, and the compliance of one ensemble, as a caller may see them.

Operators see all. A project sees the records of its own ensembles and of its own members. Of
another project's ensemble in which it takes part, it sees the policies that bind its members, and
of the members only its own. No tenant reads the names of hosts or domains.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from moorage.domain.disclosure import as_seen_by
from moorage.domain.errors import NotFound
from moorage.domain.violations import FOUND
from moorage.usecases.compliance.disclosure import violation_seen_by
from moorage.usecases.compliance.impact import ensembles_at
from moorage.usecases.compliance.judgement import judge
from moorage.usecases.compliance.records import violations_of
from moorage.usecases.compliance_ports import ViolationFilter
from moorage.usecases.decide.member_places import locate_members
from moorage.usecases.shared.access import require_operator, visible_project
from moorage.usecases.shared.lookup import every_record, host_named, if_stored
from moorage.usecases.shared.role_access import seen_ensemble

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from moorage.domain.ensembles import Ensemble, Member, PolicyStatement
    from moorage.domain.member_names import MemberName
    from moorage.domain.period import Instant
    from moorage.domain.violations import Violation
    from moorage.engine.state.snapshot import Snapshot
    from moorage.usecases.environment import UseCaseEnvironment
    from moorage.usecases.paging import Page
    from moorage.usecases.ports import Caller, Store


@dataclass(frozen=True, slots=True)
class ViolationQuery:
    """Selects violations of a listing."""

    ensemble_id: str | None = None
    host: str | None = None
    """Those whose members are on this host now: its name or UUID; for operators."""
    types: frozenset[str] = frozenset()
    required: bool | None = None
    open: bool | None = True
    since: Instant | None = None
    project_id: str | None = None
    all_projects: bool = False


@dataclass(frozen=True, slots=True)
class Compliance:
    """How an ensemble complies now, by a judgement and by what is recorded of it."""

    ensemble: Ensemble
    """As the caller may see it."""
    policies: tuple[tuple[PolicyStatement, Violation | None], ...]
    """Each policy with its violation; one that is not recorded yet has no id."""
    out_of_service: tuple[Violation, ...]
    placed: int
    """How many of its members have places."""
    not_judged: tuple[MemberName, ...]
    """Placed members of whom no policy can be judged: what they have booked is no host's."""
    judged_at: Instant
    history: tuple[Violation, ...] = ()
    """Violations that have ended, newest first."""

    @property
    def compliant(self) -> bool:
        """Whether no required policy is broken, and no member is out of service."""
        broken = any(policy.required and found is not None for policy, found in self.policies)
        return not broken and not self.out_of_service


def list_violations(
    env: UseCaseEnvironment, caller: Caller, page: Page, query: ViolationQuery
) -> Sequence[Violation]:
    """A page of the violations that the caller may see, newest first.

    Raises:
        Forbidden: a tenant asked for those of another project, or of a host.
        NotFound: no such ensemble, host, or violation with the page's marker, for this caller.
    """
    store = env.store
    project = visible_project(caller, all_projects=query.all_projects, project_id=query.project_id)
    wanted = ViolationFilter(
        project_id=project,
        types=query.types,
        required=query.required,
        open=query.open,
        since=query.since,
    )
    seen = _by_ensemble(store, caller)
    if query.ensemble_id is not None:
        ensemble = seen_ensemble(store, caller, query.ensemble_id)
        wanted = replace(wanted, project_id=query.project_id, ensembles=frozenset({ensemble.id}))
    if query.host is not None:
        require_operator(caller)
        there = _members_on(store, query.host)
        ensembles = there.keys() if wanted.ensembles is None else wanted.ensembles & there.keys()
        wanted = replace(wanted, ensembles=frozenset(ensembles))
        seen = _on_host(there)
    return _page(store, wanted, page, seen)


def compliance_of(
    env: UseCaseEnvironment, caller: Caller, ensemble_id: str, history: Page | None = None
) -> Compliance:
    """Judge an ensemble now; `history`: with that page of its violations that have ended.

    Raises:
        NotFound: no such ensemble for this caller.
    """
    store = env.store
    ensemble = seen_ensemble(store, caller, ensemble_id)
    snapshot = store.snapshot()
    judged = judge(snapshot, ensemble)
    recorded = {
        one.key: one for one in store.compliance.open_of([ensemble.id]).get(ensemble.id, ())
    }
    found: dict[str, Violation] = {}
    for one in violations_of(snapshot, ensemble, judged, FOUND):
        told = violation_seen_by(caller, ensemble, _with_record(one, recorded.get(one.key)))
        if told is not None:
            found[one.key] = told
    ended: Sequence[Violation] = ()
    if history is not None:
        wanted = ViolationFilter(ensembles=frozenset({ensemble.id}), open=False)
        ended = _page(store, wanted, history, lambda one: violation_seen_by(caller, ensemble, one))
    shown = ensemble if caller.operator else as_seen_by(ensemble, caller.project_id)
    return Compliance(
        ensemble=shown,
        policies=tuple((one, found.get(f"policy {one.name}")) for one in shown.policies),
        out_of_service=tuple(one for one in found.values() if one.policy is None),
        placed=len(judged.hosts),
        not_judged=judged.on_no_host,
        judged_at=snapshot.taken_at,
        history=tuple(ended),
    )


def _with_record(found: Violation, recorded: Violation | None) -> Violation:
    """What was found now, with the beginning and the cause that are recorded of it."""
    if recorded is None:
        return found
    return replace(found, id=recorded.id, since=recorded.since, cause=recorded.cause)


def _page(
    store: Store,
    wanted: ViolationFilter,
    page: Page,
    seen: Callable[[Violation], Violation | None],
) -> Sequence[Violation]:
    """A page of those violations of which `seen` returns what is to be shown.

    Raises:
        NotFound: the page's marker is none of them.
    """
    if page.marker is not None:
        last = if_stored(store.compliance.violation, page.marker)
        if last is None or seen(last) is None:
            raise NotFound("marker", page.marker)
    found: list[Violation] = []
    limit = page.limit
    while len(found) < limit and (some := store.compliance.page(wanted, page)):
        found += (told for one in some if (told := seen(one)) is not None)
        if len(some) < limit:
            break
        page = replace(page, marker=some[-1].id)
    return found[:limit]


def _by_ensemble(store: Store, caller: Caller) -> Callable[[Violation], Violation | None]:
    """Shows violations as the caller may see them; each ensemble is read once."""
    known: dict[str, Ensemble | None] = {}

    def seen(one: Violation) -> Violation | None:
        if caller.operator:
            return one
        if one.project_id != caller.project_id and one.ensemble_id not in known:
            known[one.ensemble_id] = if_stored(store.ensemble, one.ensemble_id)
        return violation_seen_by(caller, known.get(one.ensemble_id), one)

    return seen


def _members_on(store: Store, host: str) -> Mapping[str, tuple[Ensemble, frozenset[MemberName]]]:
    """Ensemble -> it, with its members on a host.

    Raises:
        NotFound: no such host.
    """
    snapshot = store.snapshot()
    row = host_named(snapshot, host)
    found = {}
    for written in store.compliance.ensembles_by_id(ensembles_at(store, snapshot, row)):
        ensemble = written.ensemble
        if names := frozenset(_located_at(snapshot, ensemble, row)):
            found[ensemble.id] = ensemble, names
    return found


def _located_at(snapshot: Snapshot, ensemble: Ensemble, row: int) -> Iterator[MemberName]:
    for name, place in locate_members(snapshot, ensemble).places.items():
        if snapshot.locations.hosts[snapshot.row_of[place.host]] == row:
            yield name


def _on_host(
    there: Mapping[str, tuple[Ensemble, frozenset[MemberName]]],
) -> Callable[[Violation], Violation | None]:
    """Shows the violations of these members.

    One that names no member is shown where its policy binds one of them.
    """

    def seen(one: Violation) -> Violation | None:
        if one.ensemble_id not in there:
            return None
        ensemble, names = there[one.ensemble_id]
        return one if _concerned(ensemble, one) & names else None

    return seen


def _concerned(ensemble: Ensemble, one: Violation) -> frozenset[MemberName]:
    """The members that a violation names, or else those that its policy binds."""
    if one.members:
        return frozenset(one.members)
    bound = (policy for policy in ensemble.policies if policy.name == one.policy)
    return frozenset(name for policy in bound for edge in ensemble.edges(policy) for name in edge)


def members_of_violations(store: Store) -> Iterator[Member]:
    """The members that open violations concern, of every project; some perhaps twice."""
    found: dict[str, list[Violation]] = {}
    for one in every_record(lambda page: store.compliance.page(ViolationFilter(), page)):
        found.setdefault(one.ensemble_id, []).append(one)
    for written in store.compliance.ensembles_by_id(found.keys()):
        ensemble = written.ensemble
        first, *others = (_concerned(ensemble, one) for one in found[ensemble.id])
        names = first.union(*others)
        yield from (one for one in ensemble.members if one.name in names)
