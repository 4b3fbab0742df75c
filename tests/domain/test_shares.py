"""Shares of roles: their lifecycle, and what each project sees of an ensemble."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.disclosure import as_seen_by
from moorage.domain.ensembles import Ensemble, Member, PolicyStatement, Role, Selector
from moorage.domain.errors import WrongState
from moorage.domain.member_names import MemberName
from moorage.domain.nova_servers import ServerOptions
from moorage.domain.shares import Share, ShareState

OFFERED = Share("s1", "b")
PROJECTS = ("a", "b", "c")
"""Of which `a` has the ensemble."""


def test_only_what_is_offered_is_accepted() -> None:
    accepted = OFFERED.accepted("bob")
    assert (accepted.state, accepted.user_id, accepted.joined) == (ShareState.ACCEPTED, "bob", True)
    assert not OFFERED.joined
    for share in (accepted, accepted.revoked(), OFFERED.revoked()):
        with pytest.raises(WrongState, match=f"is {share.state}: only an offered one"):
            share.accepted("bob")


def test_what_is_revoked_is_over() -> None:
    revoked = OFFERED.accepted("bob").revoked()
    assert (revoked.state, revoked.joined) == (ShareState.REVOKED, False)
    with pytest.raises(WrongState, match="revoked already"):
        revoked.revoked()


def test_a_changed_role_is_another_offer_to_those_who_take_part() -> None:
    anew = OFFERED.accepted("bob").offered_anew("s2")
    assert (anew.id, anew.state, anew.joined) == ("s2", ShareState.OFFERED, True)
    assert not OFFERED.revoked().offered_anew("s2").joined


def secret(role: str) -> str:
    """A word that only the project of a role may read."""
    return f"secret-of-{role}"


def made(owners: list[str]) -> Ensemble:
    """An ensemble with two members, with servers, in a role of each of these projects."""
    roles = tuple(
        Role(
            f"r{i}",
            {"VCPU": 1},
            flavor=secret(f"r{i}"),
            tags=frozenset({secret(f"r{i}")}),
            server=ServerOptions(image=secret(f"r{i}"), user_data=secret(f"r{i}")),
            share=None if owner == "a" else Share(f"s{i}", owner).accepted("u"),
        )
        for i, owner in enumerate(owners)
    )
    members = tuple(
        Member(MemberName(role.name, n), f"{role.name}-{n}", secret(role.name), secret(role.name))
        for role in roles
        for n in range(2)
    )
    policies = tuple(
        PolicyStatement(secret(role.name), "spread", (Selector(role=role.name),)) for role in roles
    )
    everyone = PolicyStatement("everyone", "affinity", (Selector(everyone=True),))
    return Ensemble(
        id="e",
        project_id="a",
        user_id="secret-of-a",
        name="shop",
        roles=roles,
        members=members,
        policies=(*policies, everyone),
        metadata={"key": "secret-of-a"},
        digest="secret-of-a",
        additions=(("secret-of-a", "secret-of-a"),),
    )


@given(st.lists(st.sampled_from(PROJECTS), min_size=1, max_size=6))
def test_each_project_sees_its_own_and_of_others_names_and_counts(owners: list[str]) -> None:
    whole = made(owners)
    for project in PROJECTS[1:]:
        if not whole.is_joined_by(project):
            continue
        seen = as_seen_by(whole, project)
        assert "secret-of-a" not in str(seen)
        for i, owner in enumerate(owners):
            role = f"r{i}"
            assert seen.count(role) == whole.count(role)
            assert (secret(role) in str(seen)) == (owner == project)
            assert (seen.role(role) == whole.role(role)) == (owner == project)
        assert "everyone" in {one.name for one in seen.policies}


@given(st.lists(st.sampled_from(PROJECTS), min_size=1, max_size=6))
def test_the_owner_sees_all_but_the_servers_of_others(owners: list[str]) -> None:
    whole = made(owners)
    seen = as_seen_by(whole, "a")
    assert (seen.roles, seen.policies, seen.metadata) == (
        *(whole.roles, whole.policies),
        whole.metadata,
    )
    for member in seen.members:
        own = owners[int(member.name.role[1:])] == "a"
        assert member.server_id == (secret(member.name.role) if own else None)
        assert member.migration == member.server_id
