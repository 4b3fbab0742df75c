"""The plan by itself: what it leaves alone, and what it does where a service can do less."""

from types import MappingProxyType

import pytest

from moorage.agent.ledger_tree import PresentProvider, PresentTree
from moorage.agent.plan import make_plan
from moorage.agent.plan_steps import (
    CreateProvider,
    DeleteProvider,
    MoveProvider,
    PutInventories,
    Reshape,
    described,
)
from moorage.agent.target import (
    OWNED,
    Target,
    TargetInventory,
    TargetProvider,
    key_in,
    provider_name,
    provider_uuid,
)
from moorage.agent.tree_match import Allowed
from moorage.domain.providers import Inventory

ROOT_UUID = "0d6a3f0e-5a0b-4a4e-9a53-6f1d8f0b7c11"
CARD = "pf:0000:3b:00.0"
CELL = frozenset({"HW_NUMA_ROOT", OWNED})
VFS = frozenset({"HW_NIC_SRIOV", OWNED})


def card(parent: str = "", vfs: int = 8, key: str = CARD) -> TargetProvider:
    stock = MappingProxyType({"SRIOV_NET_VF": TargetInventory(vfs)})
    return TargetProvider(key, parent, stock, frozenset({"HW_NIC_SRIOV"}), key[3:])


def cell(number: int) -> TargetProvider:
    return TargetProvider(f"numa{number}", traits=frozenset({"HW_NUMA_ROOT"}))


def present(key: str, parent: str = ROOT_UUID, vfs: int = 8, **used: int) -> PresentProvider:
    stock = {"SRIOV_NET_VF": Inventory("SRIOV_NET_VF", vfs, max_unit=vfs)}
    return PresentProvider(
        provider_uuid(ROOT_UUID, key),
        provider_name("n", key),
        parent,
        0,
        MappingProxyType(stock if key.startswith("pf") else {}),
        VFS if key.startswith("pf") else CELL,
        allocations=MappingProxyType({one: {"SRIOV_NET_VF": n} for one, n in used.items()}),
    )


def tree(*own: PresentProvider, **others: str) -> PresentTree:
    by_key = {key_in(one.name) or "": one for one in own}
    return PresentTree(ROOT_UUID, "n", MappingProxyType(by_key), MappingProxyType(others))


def codes(target: Target, there: PresentTree, allowed: Allowed = Allowed()) -> list[str]:  # noqa: B008 - frozen
    return [one.code for one in make_plan(target, there, allowed).cautions]


def test_names_and_keys_belong_together() -> None:
    for key in ("numa0", "memory", "storage", CARD, "gpu:0000:17:00.0", "fpga:0000:b0:00.0:1"):
        for root in ("n", "a/b", "node.example.org", "x" * 150):
            name = provider_name(root, key)
            assert key_in(name) == key
            assert key_in(f"{name}~0123abcd") == key
    assert key_in("n") is key_in("n/numa") is key_in("n_0000:3b:00.0") is None
    assert key_in("n/disk:nvme0n1") == "disk:nvme0n1"


@pytest.mark.parametrize("name", ["n_0000:3b:00.0", "n_pci_0000_3b_00_0", "0000:3B:00.0 of Cyborg"])
def test_a_device_of_anothers_is_known_by_its_address(name: str) -> None:
    target = Target("n", providers=(card(),))
    plan = make_plan(target, tree(other=name))
    assert plan.steps == ()
    assert [one.code for one in plan.cautions] == ["reported-by-others"]


def test_the_agents_own_goes_where_another_reports_the_device() -> None:
    target = Target("n", providers=(card(),))
    there = tree(present(CARD), other="n_0000:3b:00.0")
    free = make_plan(target, there)
    assert list(described(free.steps)) == [f"~ n/{CARD}  +CUSTOM_MOORAGE_VANISHED  SRIOV_NET_VF 0"]
    pruned = make_plan(target, there, Allowed(pruning=True))
    assert [type(one) for one in pruned.steps] == [DeleteProvider]
    used = make_plan(target, tree(present(CARD, used=1), other="n_0000:3b:00.0"))
    assert not any(isinstance(one, DeleteProvider) for one in used.steps)


def test_without_re_parenting_a_card_stays_and_so_does_its_cell() -> None:
    cells = provider_uuid(ROOT_UUID, "numa0")
    there = tree(present("numa0"), present(CARD, cells))
    target = Target("n", providers=(card(),))
    pruned = make_plan(target, there, Allowed(pruning=True))
    assert [type(one) for one in pruned.steps] == [MoveProvider, DeleteProvider]
    plan = make_plan(target, there, Allowed(re_parenting=False))
    assert plan.steps == ()
    assert [one.code for one in plan.cautions] == ["not-re-parented"]


def test_a_name_that_another_tree_has_gets_an_end() -> None:
    target = Target("n", providers=(cell(0),))
    [create, _] = make_plan(target, tree(), Allowed(taken_names=frozenset({"n/numa0"}))).steps
    assert isinstance(create, CreateProvider)
    assert create.name == f"n/numa0~{create.uuid[:8]}"


def test_equal_cards_are_renumbered_only_if_as_many_came_as_went() -> None:
    new = [card(key=f"pf:0000:{bus}:00.0") for bus in ("5e", "5f")]
    there = tree(present(CARD))
    one_for_one = make_plan(Target("n", providers=(new[0],)), there)
    assert [type(one) for one in one_for_one.steps] == [MoveProvider]
    two_for_one = make_plan(Target("n", providers=tuple(new)), there)
    assert sum(isinstance(one, CreateProvider) for one in two_for_one.steps) == 2
    assert not any(isinstance(one, MoveProvider) for one in two_for_one.steps)
    assert (
        sum(isinstance(one, PutInventories) and not one.inventories for one in two_for_one.steps)
        == 1
    )


def test_a_provider_that_could_not_be_deleted_is_kept_back() -> None:
    """Somebody took it between reading and deleting, or has a provider below it."""
    there = tree(present(CARD))
    in_use = frozenset({present(CARD).uuid})
    plan = make_plan(Target("n"), there, Allowed(in_use=in_use))
    assert list(described(plan.steps)) == [
        f"~ n/{CARD}  +CUSTOM_MOORAGE_VANISHED  SRIOV_NET_VF reserved 0 -> 8"
    ]


def test_what_is_of_no_use_to_the_agent_is_not_its_own() -> None:
    """A root that the configuration does not give to the agent is never changed."""
    root = PresentProvider(
        ROOT_UUID,
        "n",
        None,
        0,
        MappingProxyType({"VCPU": Inventory("VCPU", 8)}),
        frozenset({OWNED}),
    )
    there = PresentTree(ROOT_UUID, "n", MappingProxyType({"": root}))
    assert make_plan(Target("n", providers=()), there).steps == ()
    steps = make_plan(Target("n", providers=(cell(0),)), there).steps
    assert not any(isinstance(one, Reshape) for one in steps)


def test_a_blind_node_keeps_everything() -> None:
    there = tree(present("numa0"), present(CARD))
    blind = frozenset({"numa", "memory", "pf", "gpu", "fpga"})
    assert make_plan(Target("n", blind=blind), there).steps == ()
    assert codes(Target("n", blind=blind), there) == ["source-empty"] * 2
