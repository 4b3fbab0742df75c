"""Parameters are read from the fields, refused with their place, described as JSON schema."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.describe import read_statement
from moorage.domain.ensembles import PolicyStatement, Selector
from moorage.domain.errors import InvalidDescription, UnknownName, UnknownPolicy
from moorage.domain.topology import Topology
from moorage.policies import discover, parse
from moorage.policies.parameters import given as written
from moorage.testing.policy_checks import check_schema


def statement(type_: str, **parameters: object) -> PolicyStatement:
    return PolicyStatement("p", type_, (Selector(everyone=True),), parameters=parameters)


def test_the_ten_policies_are_found_by_scanning() -> None:
    assert list(discover()) == [
        "affinity", "anti-affinity", "ban", "exclusive", "fence", "isolate", "proximity",
        "separation", "spread", "survive",
    ]  # fmt: skip


@pytest.mark.parametrize("word", ["antiaffinity", "anti_affinity", "Anti-Affinity"])
def test_an_unknown_type_suggests_the_nearest(word: str) -> None:
    with pytest.raises(UnknownPolicy, match="did you mean anti-affinity") as caught:
        parse(statement(word))
    assert caught.value.path == "policies.p.type"


def test_a_type_in_other_words_suggests_the_policy_and_its_level() -> None:
    with pytest.raises(UnknownPolicy, match="did you mean affinity with level: server"):
        parse(statement("same-provider"))


def test_a_weight_is_a_strength() -> None:
    with pytest.raises(InvalidDescription, match=r"has strength: \{preferred: 3\}"):
        parse(statement("affinity", weight=3))


@pytest.mark.parametrize(
    ("type_", "parameters", "path"),
    [
        ("survive", {}, "policies.p.keep"),
        ("survive", {"keep": 0}, "policies.p.keep"),
        ("survive", {"keep": True}, "policies.p.keep"),
        ("survive", {"keep": "2"}, "policies.p.keep"),
        ("survive", {"keep": 10**9}, "policies.p.keep"),
        ("survive", {"keep": 1, "loose": 2}, "policies.p.loose"),
        ("affinity", {"level": 3}, "policies.p.level"),
        ("affinity", {"level": ""}, "policies.p.level"),
        ("affinity", {"level": "x" * 300}, "policies.p.level"),
        ("spread", {"level": "rack"}, "policies.p"),
        ("spread", {"max_skew": -1}, "policies.p.max_skew"),
        ("proximity", {}, "policies.p"),
        ("proximity", {"level": "rack", "max_distance": 1}, "policies.p"),
        ("separation", {"min_distance": 0}, "policies.p.min_distance"),
        ("exclusive", {"against": "nobody"}, "policies.p.against"),
        ("exclusive", {"against": "tag:"}, "policies.p.against"),
        ("fence", {}, "policies.p"),
        ("fence", {"domains": "r1"}, "policies.p.domains"),
        ("ban", {"traits": ["A", 7]}, "policies.p.traits[1]"),
    ],
)
def test_a_bad_parameter_is_refused_with_its_place(
    type_: str, parameters: dict[str, object], path: str
) -> None:
    with pytest.raises(InvalidDescription) as caught:
        parse(statement(type_, **parameters))
    assert caught.value.path == path


@pytest.mark.parametrize(
    ("type_", "parameters"),
    [
        ("affinity", {"level": "rack"}),
        ("survive", {"keep": 1, "tree": "power", "level": "feed"}),
        ("proximity", {"level": "row"}),
    ],
)
def test_a_level_no_tree_has_is_unknown(type_: str, parameters: dict[str, object]) -> None:
    policy = parse(statement(type_, **parameters))
    with pytest.raises(UnknownName, match="no such level"):
        policy.check(Topology({"location": ("zone",)}, {}, {}))


def test_a_distance_no_two_hosts_have_is_refused() -> None:
    policy = parse(statement("separation", min_distance=4))
    policy.check(Topology({"location": ("region", "zone", "rack")}, {}, {}))
    with pytest.raises(InvalidDescription, match="no two hosts are 4 apart"):
        policy.check(Topology({"location": ("zone", "rack")}, {}, {}))


@pytest.mark.parametrize("type_", list(discover()))
def test_the_schema_describes_everything_and_accepts_what_the_examples_write(type_: str) -> None:
    check_schema(discover()[type_])


@given(keep=st.integers(1, 99), lose=st.integers(1, 9), level=st.sampled_from(["host", "rack"]))
def test_what_is_given_reads_back(keep: int, lose: int, level: str) -> None:
    policy = parse(statement("survive", keep=keep, lose=lose, level=level))
    assert parse(statement("survive", **written(policy))) == policy


@pytest.mark.parametrize(
    ("word", "type_", "weight"),
    [
        ("affinity", "affinity", None),
        ("anti-affinity", "anti-affinity", None),
        ("soft-affinity", "affinity", 1),
        ("soft-anti-affinity", "anti-affinity", 1),
    ],
)
def test_novas_names_are_shorthand(word: str, type_: str, weight: int | None) -> None:
    found = read_statement(word, path="policies[0]")
    assert (found.type, found.weight, str(found.members[0])) == (type_, weight, "*")
    assert parse(found).type == type_


def test_an_unknown_shorthand_suggests_the_nearest() -> None:
    with pytest.raises(UnknownPolicy, match="did you mean soft-affinity"):
        read_statement("softaffinity", path="policies[0]")
