"""isolate: how far members are kept apart from consumers of others; `exclusive` in its words."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Final

from moorage.domain.ensembles import ISOLATING
from moorage.domain.topology import DEFAULT_TREE, SERVER
from moorage.policies.contract import OUTSIDE, Example
from moorage.policies.exclusive import OTHER_PROJECTS, Exclusive
from moorage.policies.parameters import about, read

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.domain.placement import Placement, PolicyView
    from moorage.domain.topology import Topology
    from moorage.policies.contract import Edge, Policy, Violation, Weaker
    from moorage.policies.primitives import Primitive

VNIC: Final = "vnic"


@dataclass(frozen=True, slots=True)
class Isolate:
    """No foreign consumer shares what is said with one of the selected members.

    With `at: server` no foreign slice is on the server of a slice, with `host` or `rack` nothing
    foreign at all is on its host or in its rack: that is `exclusive` with this level, and it is
    kept against later arrivals as that is. `at: vnic` always holds: every slice and every server
    has ports of its own. Broken by one for every member that shares, and, above `server`, for every
    member whose host is in no domain of the level.
    """

    type: ClassVar[str] = ISOLATING
    summary: ClassVar[str] = "how far members are kept apart from consumers of others"
    examples: ClassVar[tuple[Example, ...]] = (
        Example("an empty host", {"at": "host"}, ("r1/h1",), good=True, foreign=("r1/h2",)),
        Example("a host in use", {"at": "host"}, ("r1/h1",), good=False, foreign=("r1/h1",)),
        Example("a rack in use", {"at": "rack"}, ("r1/h1",), good=False, foreign=("r1/h2",)),
        Example("a port is its own", {"at": "vnic"}, ("r1/h1",), good=True, foreign=("r1/h1",)),
        Example("a server is its own", {}, ("r1/h1",), good=True, foreign=("r1/h1",)),
        Example("alone, in no rack", {"at": "rack"}, (OUTSIDE,), good=False),
    )

    at: str = field(
        default=SERVER,
        metadata=about("What is not shared: vnic, server, host, or another level of the tree."),
    )
    against: str = field(
        default=OTHER_PROJECTS,
        metadata=about(
            "Who is foreign: other_projects, others, or tag:<name>.",
            pattern=r"others|other_projects|tag:.+",
            allowed="others, other_projects, or tag: and a tag",
        ),
    )
    tree: str = field(default=DEFAULT_TREE, metadata=about("Tree the level belongs to."))

    @classmethod
    def parse(cls, parameters: Mapping[str, object], *, path: str) -> Policy:
        """Read wire parameters; but for `vnic` the result is the policy `exclusive`."""
        found = read(cls, parameters, path=path)
        return found if found.at == VNIC else _Exclusive(found.against, found.at, found.tree)

    def check(self, topology: Topology) -> None:
        """Nothing: ports are in no tree."""

    def violations(self, edge: Edge, placement: Placement) -> tuple[Violation, ...]:
        """None."""
        return ()

    def slack(self, edge: Edge, placement: Placement) -> None:
        """None: there is no measure."""

    def post(
        self, edge: Edge, fleet: PolicyView, *, name: str, weight: int | None
    ) -> tuple[Primitive, ...]:
        """None."""
        return ()

    def requirement(self, edge: Edge, fleet: PolicyView) -> str:
        """Nothing that a fleet could lack."""
        return "ports of their own, which all members have"

    def weaker(self, edge: Edge) -> tuple[Weaker, ...]:
        """None."""
        return ()


class _Exclusive(Exclusive):
    """The policy `exclusive`, whose level is written as `at`."""

    __slots__ = ()

    def check(self, topology: Topology) -> None:
        """Refuse a level the tree does not have."""
        topology.find_level(self.level, self.tree, path="at", also=(VNIC,))
