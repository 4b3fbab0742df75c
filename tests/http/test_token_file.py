"""Static tokens at the door: who gets in, for how long, and what is told to nobody."""

import itertools
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.domain.period import SECOND
from moorage.http import watched_file
from moorage.http.token_file import TokenFile
from moorage.tokens import listing, secret
from moorage.tokens.listing import Token
from moorage.usecases.ports import Caller

Make = Callable[..., str]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "tokens.yaml"


@pytest.fixture
def make(path: Path) -> Make:
    def make(name: str, *roles: str, expires: int | None = None) -> str:
        text = secret.new_token(name)
        listing.add(path, Token(name, secret.hashed(text), f"{name}-user", "shop", roles, expires))
        return text

    return make


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every look at the clock is a second after the one before."""
    monkeypatch.setattr(time, "monotonic", itertools.count(step=watched_file.LOOK_SECONDS).__next__)


def ask(strategy: TokenFile, token: str | None) -> Caller | None:
    environ = {} if token is None else {"HTTP_X_AUTH_TOKEN": token}
    return strategy({**environ, "HTTP_X_ROLES": "admin", "HTTP_X_PROJECT_ID": "other"}, "req-1")


def test_the_file_says_who_a_bearer_is_and_headers_say_nothing(path: Path, make: Make) -> None:
    token = make("ann", "member", "reader")
    strategy = TokenFile(str(path))
    known = Caller("ann-user", "shop", frozenset({"member", "reader"}), "req-1")
    assert ask(strategy, token) == known
    assert ask(strategy, token) == known, "from memory"


def test_nobody_else_gets_in(path: Path, make: Make) -> None:
    token = make("ann", "admin")
    strategy = TokenFile(str(path))
    stranger = secret.new_token("bob")
    forged = secret.new_token("ann")
    for wrong in (None, "", "admin", token[:-1], token + "x", stranger, forged, forged, "ä"):
        assert ask(strategy, wrong) is None
    assert ask(strategy, token) is not None


def test_an_end_is_kept_even_when_the_token_is_remembered(
    path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = time.time_ns()
    token = make("ann", "member", expires=now // 1000 + 60 * SECOND)
    strategy = TokenFile(str(path))
    assert ask(strategy, token) is not None
    monkeypatch.setattr(time, "time_ns", lambda: now + 61 * 10**9)
    assert ask(strategy, token) is None


@pytest.mark.usefixtures("quick")
def test_revoking_and_changing_are_felt_at_once(path: Path, make: Make) -> None:
    ann, bob = make("ann", "member"), make("bob", "member")
    strategy = TokenFile(str(path))
    assert ask(strategy, ann)
    assert ask(strategy, bob)
    listing.remove(path, "ann")
    assert ask(strategy, ann) is None
    path.write_text(path.read_text().replace('"member"', '"reader"'))
    found = ask(strategy, bob)
    assert found is not None
    assert found.roles == {"reader"}
    late = make("late", "member")
    assert ask(strategy, late)


@pytest.mark.usefixtures("quick")
def test_a_file_broken_later_changes_nothing(
    path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    token = make("ann", "member")
    strategy = TokenFile(str(path))
    path.write_text("- [")
    assert ask(strategy, token) is not None
    assert "is no YAML" in caplog.text


def test_a_file_broken_or_missing_at_the_start_is_refused(path: Path) -> None:
    with pytest.raises(InvalidDescription, match="cannot read"):
        TokenFile(str(path))
    for text in ("- [", "- {name: a, expires: 2026-13-45}", "- !!bool maybe", "- " + "9" * 5_000):
        path.write_text(text)
        with pytest.raises(InvalidDescription, match="is no YAML"):
            TokenFile(str(path))


def test_an_open_file_is_warned_about_and_no_token_is_logged(
    path: Path, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(0)
    token = make("ann", "member")
    path.chmod(0o644)
    strategy = TokenFile(str(path))
    assert "readable by every user" in caplog.text
    forged = secret.new_token("ann")
    ask(strategy, token)
    ask(strategy, forged)
    assert "wrong token for name ann" in caplog.text
    for one in (token, forged):
        assert one.rpartition(".")[2] not in caplog.text


def test_slow_hashes_are_computed_once_for_a_token(
    path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = make("ann", "member")
    strategy = TokenFile(str(path))
    hashed: list[str] = []
    real = secret.matches

    def counting(sent: str, stored: str) -> bool:
        hashed.append(sent)
        return real(sent, stored)

    monkeypatch.setattr(secret, "matches", counting)
    for sent in (token, token, token + "x", token + "x"):
        ask(strategy, sent)
    assert hashed == [token, token + "x"]


def test_the_whole_application_by_roles(path: Path, make: Make, whole: Any) -> None:
    admin, member = make("root", "admin"), make("ann", "member")
    client = whole(auth="token-file", token_file=str(path))
    assert client("GET", "/placement/resource_providers", token=admin).status == 200
    assert client("GET", "/placement/resource_providers", token=member).status == 403
    assert client("GET", "/placement/resource_providers", token="admin").status == 401
    assert client("GET", "/v1/ensembles", token=member).status == 200
    assert client("GET", "/v1/fleet", token=member).status == 403
    assert client("GET", "/v1/fleet", token=admin).status == 200
    assert client("GET", "/placement/", token=None).status == 200
    assert client("GET", "/v1/", token="nonsense").status == 200


def test_a_token_of_any_name_is_checked_with_the_same_work(
    path: Path, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise the time of an answer tells which names are in the file, or were."""
    made = [make("ann", "member"), make("old", "member", expires=1)]
    strategy = TokenFile(str(path))
    hashed: list[tuple[str, str]] = []
    real = secret.matches

    def counting(sent: str, stored: str) -> bool:
        hashed.append((sent, stored))
        return real(sent, stored)

    monkeypatch.setattr(secret, "matches", counting)
    sent = [*(secret.new_token(name) for name in ("ann", "old", "bob", "eve")), made[1]]
    for one in (*sent, *sent):
        assert ask(strategy, one) is None
    assert [one for one, _ in hashed] == sent, "each once, as from then on they are known"
    assert len({tuple(stored.split("$")[:4]) for _, stored in hashed}) == 1
    assert ask(strategy, made[0]) is not None
