"""The contract of a placement policy.

A policy is a frozen dataclass of parameters with a docstring. Everything else follows from
its file: the API schema and the reference page (fields, docstring, `examples`), explanation
texts (`requirement`), relaxations (`weaker`), and the generic tests that run its examples, compare
`violations` with `post` and every solver with the exhaustive one.

Meaning and compilation are written independently: `violations` looks at a finished placement
and never at primitives, so a wrong compilation is caught before commit.

A required policy means: a placement violates it no more than the members that are placed already
do, on hyperedges that were there before. Policies need not handle that: see
`engine.joint.standing_violations`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.domain.member_names import MemberName
    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.primitives import Primitive

Edge = tuple["MemberName", ...]
"""One hyperedge: the members to which one instance of the policy applies."""


@dataclass(frozen=True, slots=True)
class Violation:
    """One way a placement violates a policy; `amount` >= 1 measures it in the policy's unit."""

    members: tuple[MemberName, ...]
    text: str
    amount: int = 1
    named: bool = True
    """Whether the text may name hosts or domains: tenants read another one then."""


@dataclass(frozen=True, slots=True)
class Weaker:
    """One step towards a weaker policy, or a change of the edge's size that helps it.

    `parameters` are the changed parameters (name -> new value); `grow` asks for that many
    more members of the selected role instead. `cost` orders steps, smaller is nearer.
    """

    cost: int
    parameters: Mapping[str, object]
    grow: int = 0


OUTSIDE: Final = "outside/h1"
"""The host of the example fleet that is in no rack and no zone."""


@dataclass(frozen=True, slots=True)
class Example:
    """A placement on the example fleet, and whether the policy accepts it.

    `hosts` lists the members' hosts in order, named `<rack>/<host>` on a fleet of racks
    `r1..r3` with hosts `h1..h3` each in zone `z1` (r1, r2) and `z2` (r3); `OUTSIDE` is in none.
    `foreign` names hosts with a foreign consumer. `parameters` as on the wire.
    """

    title: str
    parameters: Mapping[str, object]
    hosts: tuple[str, ...]
    good: bool
    foreign: tuple[str, ...] = ()


class Policy(Protocol):
    """A typed rule over hyperedges of members.

    A parameter called `domains` holds names as `PolicyView.hosts_in` takes them. Tenants may not
    name hosts or providers in it (see `usecases.ensembles.policy_checks`). One called `between` may
    name sides (see `sides`); the policy is then about the members of these.
    """

    type: ClassVar[str]
    """Its name on the wire."""
    summary: ClassVar[str]
    """One line for listings."""
    examples: ClassVar[tuple[Example, ...]]

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Policy:
        """Read wire parameters.

        Raises:
            InvalidDescription: unknown or ill-typed parameter; `path` prefixes its place.
        """

    def check(self, topology: Topology) -> None:
        """Raise UnknownName when a level or tree it names does not exist."""

    def violations(self, edge: Edge, placement: Placement) -> Sequence[Violation]:
        """All violations of the policy by the placement on this edge; empty: it is satisfied."""

    def slack(self, edge: Edge, placement: Placement) -> int | None:
        """By how much the policy's measure may change before it is violated; None: no measure."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> Iterable[Primitive]:
        """Compile for one edge: the primitives that are together equivalent to the policy."""

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """What the policy needs of this fleet, as a phrase: `4 racks for 4 x db`.

        It is shown to tenants unchanged, so it must not contain the number of hosts or domains of
        the fleet; those are facts, which are rounded for tenants.
        """

    def weaker(self, edge: Edge) -> Iterable[Weaker]:
        """Steps towards weaker forms, nearest first; bounded (at most about ten)."""
