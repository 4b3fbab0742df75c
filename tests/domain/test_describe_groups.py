"""Ports, volumes and groups as written: what is understood, and what is refused where."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.describe import read_role
from moorage.domain.errors import InvalidDescription
from moorage.domain.request_groups import Group, GroupKind

PORT = {
    "name": "repl",
    "vnic_type": "direct",
    "resources": {"SRIOV_NET_VF": 1},
    "required": ["CUSTOM_PHYSNET_A", ["HW_NIC_SRIOV", "HW_NIC_SRIOV_TRUSTED"]],
    "same_subtree": True,
}


def role(**fields: Any) -> dict[str, Any]:
    return {"name": "db", "flavor": "m1.xlarge", **fields}


def test_ports_and_volumes_become_groups() -> None:
    found = read_role(
        role(ports=[PORT], volumes=[{"name": "data", "size_gb": 200}], group_policy="isolate"),
        "members[0]",
    )
    assert found.isolate
    assert found.groups == (
        Group(
            "repl",
            {"SRIOV_NET_VF": 1},
            GroupKind.PORT,
            required=(
                frozenset({"CUSTOM_PHYSNET_A"}),
                frozenset({"HW_NIC_SRIOV", "HW_NIC_SRIOV_TRUSTED"}),
            ),
            beside=True,
        ),
        Group("data", {"DISK_GB": 200}, GroupKind.VOLUME),
    )


def test_groups_alone_are_a_size_too() -> None:
    fields = {"name": "vm", "groups": [{"name": "cpus", "resources": {"VCPU": 4}}]}
    assert read_role(fields, "members[0]").resources is None
    node = {"name": "node", "required": ["HW_NUMA_ROOT"]}
    with pytest.raises(InvalidDescription, match="no same_subtree names it"):
        read_role({**fields, "groups": [*fields["groups"], node]}, "members[0]")
    both = read_role(
        {**fields, "groups": [*fields["groups"], node], "same_subtree": [["node", "cpus"]]}, "m"
    )
    assert both.same_subtree == (frozenset({"node", "cpus"}),)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"ports": {"name": "a"}}, "m.ports"),
        ({"ports": [{**PORT, "size_gb": 3}]}, "m.ports[0].size_gb"),
        ({"ports": [{**PORT, "vnic_type": "copper"}]}, "m.ports[0].vnic_type"),
        ({"ports": [{**PORT, "vnic_type": ["direct"]}]}, "m.ports[0].vnic_type"),
        ({"ports": [{**PORT, "same_subtree": ["a"]}]}, "m.ports[0].same_subtree"),
        ({"ports": [{**PORT, "resources": {}}]}, "m.ports[0].resources"),
        ({"ports": [PORT], "volumes": [{"name": "repl", "size_gb": 1}]}, "m"),
        ({"volumes": [{"name": "v", "size_gb": 0}]}, "m.volumes[0].size_gb.DISK_GB"),
        ({"volumes": [{"name": "v", "size_gb": "9"}]}, "m.volumes[0].size_gb"),
        ({"groups": [{"name": "g"}]}, "m.groups[0].resources"),
        ({"same_subtree": [["x"]]}, "m.same_subtree[0]"),
        ({"group_policy": ["none"]}, "m.group_policy"),
        ({"groups": [{"name": f"g{n}", "resources": {"VCPU": 1}} for n in range(65)]}, "m"),
    ],
    ids=[
        "no-list", "size-of-a-port", "vnic-type", "vnic-type-no-text", "sets-in-a-group",
        "nothing", "one-name-twice", "size-zero", "size-text", "asks-for-nothing", "no-such-group",
        "policy", "too-many",
    ],
)  # fmt: skip
def test_what_cannot_be_understood_is_refused_where_it_is(fields: Any, path: str) -> None:
    with pytest.raises(InvalidDescription) as caught:
        read_role(role(**fields), "m")
    assert caught.value.path == path


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=6,
)


@given(
    field=st.sampled_from(["ports", "volumes", "groups", "same_subtree", "group_policy"]),
    key=st.sampled_from([*PORT, "size_gb", "forbidden", "member_of"]),
    value=JSON,
    whole=st.booleans(),
)
def test_nonsense_is_refused_and_nothing_else_happens(
    field: str, key: str, value: object, *, whole: bool
) -> None:
    given_value = value if whole else [{**PORT, key: value}]
    try:
        read_role(role(**{field: given_value}), "m")
    except InvalidDescription:
        return
