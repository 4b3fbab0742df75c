import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.domain.describe import read_statement
from moorage.domain.ensembles import Member, PolicyStatement, Role, Selector, edges
from moorage.domain.errors import InvalidDescription
from moorage.domain.member_names import MemberName

ROLES = (
    Role("web", {"VCPU": 1}, tags=frozenset({"front"})),
    Role("app", {"VCPU": 2}, tags=frozenset({"front", "core"})),
    Role("db", {"VCPU": 8}),
)


def names(role: str, count: int) -> list[MemberName]:
    return [MemberName(role, index) for index in range(count)]


MEMBERS = [*names("web", 3), *names("app", 2), *names("db", 3)]


def resolve(*selectors: str, zipped: bool = False) -> tuple[tuple[str, ...], ...]:
    statement = PolicyStatement(
        "p", "affinity", tuple(Selector.parse(text) for text in selectors), zip=zipped
    )
    return tuple(tuple(map(str, edge)) for edge in edges(statement, ROLES, MEMBERS))


@pytest.mark.parametrize(
    ("selectors", "edge"),
    [
        (["db"], ("db[0]", "db[1]", "db[2]")),
        (["db[1]"], ("db[1]",)),
        (["tag:core", "db[0]"], ("app[0]", "app[1]", "db[0]")),
        (["web", "tag:front"], ("web[0]", "web[1]", "web[2]", "app[0]", "app[1]")),
    ],
)
def test_selectors_merge_into_one_hyperedge(selectors: list[str], edge: tuple[str, ...]) -> None:
    assert resolve(*selectors) == (edge,)


def test_everyone_is_every_member() -> None:
    assert set(resolve("*")[0]) == {str(name) for name in MEMBERS}


def test_zip_makes_one_hyperedge_per_index_and_leaves_the_surplus_free() -> None:
    assert resolve("app", "db", zipped=True) == (("app[0]", "db[0]"), ("app[1]", "db[1]"))


def test_a_selector_without_members_gives_no_hyperedge() -> None:
    assert resolve("cache") == ()
    assert resolve("cache", "db", zipped=True) == ()


@given(st.sampled_from(["web", "a/b", "x.y_z-1"]), st.integers(0, 999_999))
def test_a_member_name_survives_its_text(role: str, index: int) -> None:
    assert MemberName.parse(str(MemberName(role, index))) == MemberName(role, index)


@pytest.mark.parametrize("text", ["db", "db[]", "db[-1]", "db[1", "[1]", "db[1]x", "db[1234567]"])
def test_what_is_no_member_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        MemberName.parse(text)


@given(st.sampled_from(["*", "web", "db[2]", "tag:front", "a/b/c"]))
def test_a_selector_survives_its_text(text: str) -> None:
    assert str(Selector.parse(text)) == text


def test_members_sort_by_role_and_then_by_number() -> None:
    mixed = [MemberName("a", 10), MemberName("b", 0), MemberName("a", 2)]
    assert [str(name) for name in sorted(mixed)] == ["a[2]", "a[10]", "b[0]"]
    assert Member(MemberName("a", 2), uuid="u").server_id is None


@pytest.mark.parametrize("zipped", [["app"], ["app", "app"], ["app", "db", "app"]])
def test_a_zip_that_joins_nothing_is_refused(zipped: list[str]) -> None:
    with pytest.raises(InvalidDescription, match="two different selectors") as refused:
        read_statement({"type": "affinity", "zip": zipped}, path="policies[0]")
    assert refused.value.path == "policies[0].zip"
