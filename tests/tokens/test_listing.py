"""The token file: written by commands at once, read by a server meanwhile, refused when wrong."""

import json
import threading
from pathlib import Path

import pytest

from moorage.domain.errors import DuplicateName, InvalidDescription, NotFound
from moorage.domain.period import parse_instant
from moorage.tokens import listing, secret
from moorage.tokens.listing import Token

HASH = secret.hashed("moorage.x.y")
LATE = parse_instant("2099-01-01T00:00:00Z")


def token(name: str) -> Token:
    return Token(name, HASH, "ann", "shop", ("member",), LATE)


def test_what_is_added_is_read_until_it_is_removed(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    listing.add(path, token("a"))
    listing.add(path, token("b"))
    assert listing.read(path) == {"a": token("a"), "b": token("b")}
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(DuplicateName):
        listing.add(path, token("a"))
    listing.remove(path, "a")
    assert list(listing.read(path)) == ["b"]
    with pytest.raises(NotFound):
        listing.remove(path, "a")
    assert [one.name for one in tmp_path.iterdir()] == ["tokens.yaml"]


def test_the_mode_of_the_file_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    listing.add(path, token("a"))
    path.chmod(0o640)
    listing.add(path, token("b"))
    assert path.stat().st_mode & 0o777 == 0o640
    assert not listing.exposed(path)
    path.chmod(0o644)
    assert listing.exposed(path)


def test_commands_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    names = [f"t{number}" for number in range(12)]
    threads = [threading.Thread(target=listing.add, args=(path, token(name))) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(listing.read(path)) == set(names)


def test_a_file_by_hand_may_be_plain_yaml(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(
        f"- name: a\n  hash: {HASH}\n  user: ann\n  project: shop\n"
        "  roles: [Member, reader]\n  expires: 2099-01-01T00:00:00Z\n"
    )
    assert listing.read(path)["a"] == Token("a", HASH, "ann", "shop", ("member", "reader"), LATE)
    path.write_text("")
    assert listing.read(path) == {}


def test_a_token_ends_at_its_instant() -> None:
    assert token("a").good_at(LATE - 1)
    assert not token("a").good_at(LATE)
    assert "scrypt" not in repr(token("a"))


GOOD = {"name": "a", "hash": HASH, "user": "u", "project": "p", "roles": ["member"]}


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (["x"], "a token is a mapping"),
        (GOOD | {"rols": ["x"]}, "unknown key rols"),
        (GOOD | {"name": "a b"}, "a name has letters"),
        (GOOD | {"name": ""}, "name must be a text"),
        (GOOD | {"project": 7}, "project must be a text"),
        (GOOD | {"roles": []}, "roles must be a list"),
        (GOOD | {"roles": "admin"}, "roles must be a list"),
        (GOOD | {"roles": ["member,admin"]}, "'member,admin' is not the name of one role"),
        (GOOD | {"roles": ["member admin"]}, "is not the name of one role"),
        (GOOD | {"roles": [" admin"]}, "is not the name of one role"),
        (GOOD | {"roles": ["member\nadmin"]}, "is not the name of one role"),
        (GOOD | {"roles": [""]}, "is not the name of one role"),
        (GOOD | {"hash": "plain"}, "a hash is scrypt"),
        (GOOD | {"expires": "soon"}, "soon"),
        (GOOD | {"expires": 12}, "expires must be a time"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, entry: object, problem: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(json.dumps([GOOD | {"name": "first"}, entry]))
    with pytest.raises(InvalidDescription, match=r"tokens\.yaml, entry 2") as caught:
        listing.read(path)
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "text",
    [f"- [{HASH}", "just: this", f'"{HASH}"', '[{"name": "a"}'],
    ids=["open-list", "mapping", "one-text", "open-entry"],
)
def test_a_broken_file_is_refused_without_quoting_it(tmp_path: Path, text: str) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(text)
    with pytest.raises(InvalidDescription) as caught:
        listing.read(path)
    assert str(caught.value).startswith(f"token file {path}")
    assert HASH[30:] not in str(caught.value)


def test_the_same_name_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tokens.yaml"
    path.write_text(json.dumps([GOOD, GOOD]))
    with pytest.raises(InvalidDescription, match="there is a a already"):
        listing.read(path)
