"""Count how many more members of a role, or sets of roles, would fit beside the placed members."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, replace
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.domain.deadline import TimeExpired
from moorage.domain.describe import has_sides
from moorage.domain.ensembles import MemberSelection
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.engine.explain.conflicts import any_placement
from moorage.engine.joint.build import build_on_terrain
from moorage.engine.joint.problem import Verdict, most_by_host
from moorage.engine.joint.proved_solve import solve
from moorage.engine.joint.step_size import fits_in_any_order
from moorage.policies.proximity import Proximity

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from moorage.domain.ensembles import PolicyStatement, Role
    from moorage.domain.period import Duration
    from moorage.engine.joint.build import BuiltProblem
    from moorage.engine.joint.terrain import Terrain
    from moorage.usecases.decide.solution import VerifiedPlacement
    from moorage.usecases.ports import Solver


_MOST_TRIED: Final = 64
MILLISECOND: Final = SECOND // 1000


@dataclass(frozen=True, slots=True)
class AdditionalMembers:
    """`count` more members fit; if not `exact`, at least so many."""

    count: int
    exact: bool
    step: int = 1
    """Every multiple of it up to `count` fits, one step after the other or at once. 0: every
    number up to `count` does, but perhaps at once only."""


def told_with_step(told: int, step: int) -> tuple[int, int]:
    """A count that is told, perhaps rounded down, and the step by which it can be reached.

    `step` is that of `AdditionalMembers`, whose count is at least `told`.
    """
    if step == 0:
        return told, max(told, 1)
    told -= told % step
    return told, step if told else 1


def roles_of_set(name: str) -> tuple[str, ...]:
    """The roles of a set such as `web+db`; a role's name has no `+`."""
    return tuple(name.split("+"))


def count_additional(
    solver: Solver,
    found: VerifiedPlacement,
    roles: Sequence[Role],
    *,
    most: int,
    time_limit: Duration,
) -> AdditionalMembers:
    """The largest n such that n more members of each role can be placed beside the placed ones.

    With all placed members fixed and all required policies met, n - 1 members fit if n do: an upper
    bound per domain stays met, a lower bound is met already, and with a maximal skew of at least
    one a member can be left out of its fullest domain. So the largest n is found by doubling and
    halving. This does not hold for a maximal skew of 0 (only whole rounds fit), nor for two skew
    policies, nor for one about several of the roles, as its fullest domain may lack one of them;
    nor for nearness between several of the roles, as fewer of one may be near none of another.
    Nor does it hold for roles without members, of which a lower bound asks for several at once.
    Then every number is tried from the top, if there are at most `_MOST_TRIED`; of more, multiples
    of the smallest that fits. The result is not exact if others could fit, if time ran out, or at
    `most`.

    `time_limit` bounds all the solves together.
    """
    try:
        search = _Search(solver, found, roles, most=most, time_limit=time_limit)
    except TimeExpired:
        return AdditionalMembers(0, exact=False)
    top = min(search.ceiling, most)
    request = found.built.request
    leaps = may_leap(request.policies, request.roles, request.members, search.new_members(1))
    unsure = False
    if not leaps:
        low = _largest(search.fits, top)
        step = 1 if search.in_any_order(low) else 0
    else:
        some = min(top, _MOST_TRIED)
        first = next((count for count in range(1, some + 1) if search.fits(count)), 0)
        rounds = bool(first) and search.in_any_order(first, at_once=True)
        if top <= _MOST_TRIED:
            low = next((count for count in range(top, first, -1) if search.fits(count)), first)
        else:
            low = first and first * _largest(lambda n: search.fits(n * first), top // first)
            unsure = not rounds
        step = _round(first, low) if rounds else low
    exact = not (unsure or search.unsure or (low + max(step, 1) > most and most < search.ceiling))
    return AdditionalMembers(low, exact, step)


def _round(first: int, low: int) -> int:
    """The smallest number, of which `low` is a multiple, that is no smaller than `first`."""
    return next((step for step in range(first, low) if low % step == 0), low)


def _largest(fits: Callable[[int], bool], top: int) -> int:
    """The largest count that fits, if every smaller one fits too; by doubling and halving."""
    low, high = 0, top + 1
    step = 1
    while low + step < high:
        if not fits(low + step):
            high = low + step
            break
        low, step = low + step, step * 2
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            low = middle
        else:
            high = middle
    return low


class _Search:
    """Tests counts by solving; `ceiling` is the bound from capacity and filters alone."""

    def __init__(
        self,
        solver: Solver,
        found: VerifiedPlacement,
        roles: Sequence[Role],
        *,
        most: int,
        time_limit: Duration,
    ) -> None:
        self._solver = solver
        self._found = found
        self._roles = roles
        self._left = time_limit
        self._terrain = _terrain_after(found)
        self.unsure = False
        self.ceiling = self._ceiling(most)

    def fits(self, count: int) -> bool:
        """Whether `count` more can be placed; False and `unsure` if that is unknown."""
        if self._left <= 0:
            self.unsure = True
            return False
        try:
            problem = any_placement(self._grown(count).problem)
            outcome = solve(self._solver, problem, time_limit=self._left, seed=0)
        except TimeExpired:
            self.unsure = True
            return False
        self._left -= int(outcome.wall_ms * MILLISECOND)
        self.unsure |= outcome.verdict is Verdict.UNKNOWN
        return outcome.verdict is Verdict.FEASIBLE

    def in_any_order(self, count: int, *, at_once: bool = False) -> bool:
        """Whether so many more, which fit, also fit one after the other; or others after them."""
        try:
            return len(self._roles) == 1 and (
                count < 1 or fits_in_any_order(self._grown(count), at_once=at_once)
            )
        except TimeExpired:
            return False

    def new_members(self, count: int) -> list[MemberName]:
        """The names of so many more members of each of the roles."""
        request = self._found.built.request
        present = frozenset((*request.members, *request.absent))
        more: list[MemberName] = []
        for role in self._roles:
            named = (MemberName(role.name, index) for index in itertools.count())
            more += islice((one for one in named if one not in present), count)
        return more

    def _grown(self, count: int) -> BuiltProblem:
        request = self._found.built.request
        grown = replace(
            request,
            members=(*request.members, *self.new_members(count)),
            policies=tuple(one for one in request.policies if one.required),
            fixed=MappingProxyType(dict(self._found.hosts)),
            former_edges={rule.statement.name: rule.edges for rule in self._found.built.rules},
            choices=MappingProxyType(
                {
                    **request.choices,
                    **{name: place.choice for name, place in self._found.places.items()},
                }
            ),
        )
        return build_on_terrain(grown, self._terrain, closed=self._found.built.closed)

    def _ceiling(self, most: int) -> int:
        # The free columns of devices depend on the number of members, so build with the most.
        built = self._grown(1 if self._terrain.devices is None else most)
        problem, alternatives = built.problem, built.alternatives
        rooms = []
        for role in self._roles:
            names = (role.name,) if alternatives is None else alternatives.roles[role.name]
            rows = [problem.roles.index(name) for name in names]
            room = most_by_host(problem, rows)
            # No class common to the alternatives: nothing bounds their number.
            rooms.append(most if room is None else int(room.sum()))
        return min(rooms)


def _terrain_after(found: VerifiedPlacement) -> Terrain:
    return found.built.terrain.with_places(list(found.places.values()))


def may_leap(
    policies: Iterable[PolicyStatement],
    roles: Sequence[Role],
    members: Collection[MemberName],
    new: Collection[MemberName],
) -> bool:
    """Whether n more members of some roles may fit where n - 1 do not.

    `new` are members of these roles that come beside `members`; see `count_additional`.
    """
    selection, names = MemberSelection(roles, (*members, *new)), {one.role for one in new}
    skewed: Counter[str] = Counter()
    for one in (one for one in policies if one.required):
        edges = selection.edges(one)
        about = {member.role for edge in edges for member in edge} & names
        skew = one.parameters.get("max_skew")
        if skew is not None and about:
            skewed.update(about)
        between = one.type == Proximity.type and has_sides(one.parameters)
        if (skew is not None or between) and len(about) > 1:
            return True
        bounded = not _LOWER_BOUNDS.isdisjoint(one.parameters)
        if (skew == 0 and about) or (bounded and any(map(frozenset(new).issuperset, edges))):
            return True
    return max(skewed.values(), default=0) > 1


_LOWER_BOUNDS: Final = frozenset({"min_domains", "keep"})
"""Parameters by which a policy asks for several members at once."""
