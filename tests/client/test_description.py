import pytest

from moorage.client.description import read_description
from moorage.domain.errors import InvalidDescription

SHOP = """\
name: shop
members:
  - {name: web, count: 3, flavor: small}
policies:
  - name: apart
    type: anti-affinity
    members: [web]
    level: host
"""


def test_the_body_is_what_was_written() -> None:
    body, described = read_description(SHOP)
    assert body["members"] == [{"name": "web", "count": 3, "flavor": "small"}]
    assert described.roles[0].count == 3
    assert described.policies[0].parameters == {"level": "host"}


def test_the_outer_key_of_the_api_is_allowed() -> None:
    wrapped = "ensemble:\n" + "".join(f"  {line}\n" for line in SHOP.splitlines())
    assert read_description(wrapped) == read_description(SHOP)


@pytest.mark.parametrize(
    ("before", "after", "line", "said"),
    [
        ("count: 3", "count: many", 3, "count"),
        ("flavor: small", "flavour: small", 3, "unknown field flavour"),
        ("    members: [web]\n", "", 5, "members or zip"),
        ("name: shop", "nome: shop", 1, "nome"),
        ("members: [web]", "members: ['web[x]']", 7, "db\\[0\\]"),
        ("level: host", "level: [", 9, "not YAML"),
    ],
)
def test_mistakes_name_their_line(before: str, after: str, line: int, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said) as caught:
        read_description(SHOP.replace(before, after))
    assert caught.value.line == line


@pytest.mark.parametrize("text", ["", "[]", "7", "- a"])
def test_something_else_is_refused(text: str) -> None:
    with pytest.raises(InvalidDescription):
        read_description(text)
