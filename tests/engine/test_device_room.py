"""The room for shares of devices, against a count one by one."""

import random
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from tests.engine.test_room import ALWAYS, provider, snapshot

from moorage.domain.ensembles import Role
from moorage.domain.member_names import MemberName
from moorage.domain.period import SECOND
from moorage.domain.request_groups import Group
from moorage.domain.request_mix import RequestMix, Shape, shape
from moorage.domain.requests import EnsembleRequest, Objective
from moorage.engine.joint.build import build
from moorage.engine.joint.fleet_room import with_room
from moorage.engine.joint.problem_index import index_problem
from moorage.engine.state.snapshot import ProviderState, Snapshot
from moorage.solver.greedy import Greedy
from moorage.solver.room_costs import RoomCosts
from moorage.testing.problems import PROJECT

FAST = frozenset({"CUSTOM_FAST"})


def gpus(host: str, *free: int, fast: Sequence[int] = ()) -> list[ProviderState]:
    """A host whose GPUs have so much of 10 shares left; those numbered in `fast` have the trait."""
    states = [provider(host, {"VCPU": 64})]
    for n, left in enumerate(free):
        used = {f"x{host}{n}": {"SHARE": 10 - left}} if left < 10 else {}
        states.append(
            provider(
                f"{host}-{n}", {"SHARE": 10}, parent=host, root=host, used=used,
                traits=FAST if n in fast else frozenset(),
            )
        )  # fmt: skip
    return states


def request(*roles: Role, members: int = 1) -> EnsembleRequest:
    names = tuple(MemberName(role.name, i) for role in roles for i in range(members))
    return EnsembleRequest(PROJECT, roles, names, (), ALWAYS, objective=Objective.ROOM)


def of_group(amount: int, name: str = "gpu", required: tuple[frozenset[str], ...] = ()) -> Role:
    groups = (Group("g", {"SHARE": amount}, required=required),)
    return Role(name, {"VCPU": 1}, groups=groups)


def chosen(asked: EnsembleRequest, fleet: Snapshot, mix: RequestMix) -> str:
    built = with_room(build(asked, fleet), fleet, mix)
    hosts = Greedy().solve(built.problem, time_limit=20 * SECOND, seed=0).hosts
    assert hosts is not None
    return built.problem.hosts[int(hosts[0])]


def test_a_share_goes_where_no_larger_one_is_lost() -> None:
    """Each has 18 shares left. On `a` two of 9: a share of 4 loses one of the mix. `b` has 8."""
    fleet = snapshot(*gpus("a", 9, 9), *gpus("b", 10, 8))
    nines = RequestMix.of({shape({}, groups=[shape({"SHARE": 9})]): 1})
    # On `b` the first that has room is given out: the only one with 9.
    assert chosen(request(of_group(4)), fleet, nines) == "a"
    fleet = snapshot(*gpus("a", 9, 9), *gpus("b", 8, 10))
    assert chosen(request(of_group(4)), fleet, nines) == "b"
    own = RequestMix.of({shape({"VCPU": 1, "SHARE": 9}): 1})
    assert chosen(request(Role("gpu", {"VCPU": 1, "SHARE": 4})), fleet, own) == "b"


def test_devices_without_the_trait_give_no_room() -> None:
    """`a` loses its only fast GPU to a member that does not need it, `b` one of the others."""
    fleet = snapshot(*gpus("a", 10, 9, fast=[0]), *gpus("b", 9, 10, fast=[1]))
    fast = RequestMix.of({shape({}, groups=[shape({"SHARE": 9}, [FAST])]): 1})
    assert chosen(request(of_group(4)), fleet, fast) == "b"
    assert chosen(request(of_group(2, required=(FAST,))), fleet, fast) == "a"


class Count:
    """Hosts with devices, counted one by one."""

    def __init__(self, dice: random.Random) -> None:
        hosts = [f"h{i}" for i in range(dice.randint(1, 4))]
        self.left = {h: [dice.randint(0, 10) for _ in range(dice.randint(0, 4))] for h in hosts}
        self.fast = {h: [dice.random() < 0.5 for _ in some] for h, some in self.left.items()}
        self.mix: Counter[Shape] = Counter()
        for _ in range(dice.randint(1, 4)):
            group = shape({"SHARE": dice.randint(1, 10)}, [FAST] if dice.random() < 0.4 else ())
            own = {"SHARE": dice.randint(1, 10)} if dice.random() < 0.3 else {}
            groups = () if own else [group] * dice.randint(1, 2)
            self.mix[shape(own, groups=groups)] += dice.randint(1, 9)
        self.roles = [
            of_group(dice.randint(1, 9), name, (FAST,) if dice.random() < 0.4 else ())
            for name in ("r0", "r1")
        ]
        self.total = {one: sum(self.room(h, self.left[h], one) for h in hosts) for one in self.mix}
        known = sum(n for one, n in self.mix.items() if self.total[one])
        self.scale = len(hosts) / max(known, 1)

    def fleet(self) -> Snapshot:
        states = []
        for host, left in self.left.items():
            fast = [n for n, one in enumerate(self.fast[host]) if one]
            states += gpus(host, *left, fast=fast)
        return snapshot(*states)

    def given(self, host: str, placed: Sequence[int]) -> list[int] | None:
        """What is left on a host's devices after these roles; None: not all of them fit."""
        now = list(self.left[host])
        for r in sorted(placed):
            (group,) = self.roles[r].groups
            amount, able = group.resources["SHARE"], self.able(host, fast=bool(group.required))
            fits = [n for n in able if now[n] >= amount]
            if not fits:
                return None
            now[fits[0]] -= amount
        return now

    def able(self, host: str, *, fast: bool) -> list[int]:
        return [n for n, quick in enumerate(self.fast[host]) if quick or not fast]

    def room(self, host: str, free: Sequence[int], wanted: Shape) -> int:
        """How many of a shape these devices can give."""
        most = [sum(f // amount for f in free) for _, amount in wanted.resources]
        for group, number in Counter(wanted.groups).items():
            able, amount = self.able(host, fast=bool(group.required)), group.resources[0][1]
            most.append(sum(free[n] // amount for n in able) // number)
        return min(most)

    def harm(self, host: str, placed: Sequence[int], role: int) -> float | None:
        """What one more member costs; None: it does not fit."""
        before, after = self.given(host, placed), self.given(host, [*placed, role])
        if before is None or after is None:
            return None
        lost = sum(
            n * (self.room(host, before, one) - self.room(host, after, one)) / self.total[one]
            for one, n in self.mix.items()
            if self.total[one]
        )
        return min(20 * self.scale * lost, 250)


@pytest.mark.parametrize("seed", range(80))
def test_harm_is_counted_device_by_device(seed: int) -> None:
    """While members of two roles come to hosts and leave them again."""
    dice = random.Random(seed)
    count = Count(dice)
    fleet = count.fleet()
    asked = build(request(*count.roles, members=3), fleet)
    problem = with_room(asked, fleet, RequestMix.of(count.mix)).problem
    assert problem.room is not None
    free, changed = problem.free.T.copy(), list[int]()
    costs = RoomCosts(index_problem(problem), problem.room, free, changed)
    on: dict[str, list[int]] = {host: [] for host in count.left}
    for _ in range(6):
        row, role, sign = dice.randrange(len(on)), dice.randrange(2), 1
        placed = on[problem.hosts[row]]
        if placed and dice.random() < 0.3:
            role, sign = dice.choice(placed), -1
            placed.remove(role)
        elif count.given(problem.hosts[row], [*placed, role]) is not None:
            placed.append(role)
        else:
            continue
        free[:, row] -= sign * problem.demand[role]
        costs.take(role, row, sign)
        changed.append(row)
        for r in range(2):
            found = costs.of(r, np.arange(len(on)))
            expected = [count.harm(host, on[host], r) for host in problem.hosts]
            sure = [at for at, harm in enumerate(expected) if harm is not None]
            assert [found[at] for at in sure] == pytest.approx(
                [expected[at] for at in sure], rel=1e-4, abs=1e-4
            )
