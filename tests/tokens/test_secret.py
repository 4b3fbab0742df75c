"""Tokens and their hashes: what matches, what is refused."""

import base64
import hashlib

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.tokens import secret


def test_a_token_matches_its_hash_and_nothing_else() -> None:
    token = secret.new_token("ops.eu-1")
    stored = secret.hashed(token)
    assert secret.matches(token, stored)
    assert not secret.matches(token[:-1], stored)
    assert not secret.matches(token + "x", stored)
    assert not secret.matches("", stored)
    assert secret.hashed(token) != stored, "salted"
    assert token.rpartition(".")[2] not in stored


def test_a_token_begins_with_its_name() -> None:
    assert secret.name_in(secret.new_token("ops.eu-1")) == "ops.eu-1"
    for text in ("", "admin", "moorage.", "moorage.ops", "moorage..x", "moorage.ops.", "x.ops.y"):
        assert secret.name_in(text) is None


def test_tokens_are_long_and_different() -> None:
    tokens = {secret.new_token("a") for _ in range(100)}
    assert len(tokens) == 100
    assert all(len(base64.urlsafe_b64decode(one[10:] + "=")) == 32 for one in tokens)


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


SALT, KEY = encoded(b"s" * 16), encoded(b"k" * 32)


def test_hashes_of_other_makers_are_understood() -> None:
    salt = bytes(range(16))
    key = hashlib.pbkdf2_hmac("sha256", b"moorage.a.b", salt, 100_000)
    stored = f"pbkdf2-sha256$100000${encoded(salt)}${encoded(key)}"
    assert secret.matches("moorage.a.b", stored)
    assert not secret.matches("moorage.a.c", stored)
    key = hashlib.scrypt(b"t", salt=salt, n=4096, r=4, p=2, dklen=32)
    assert secret.matches("t", f"scrypt$4096$4$2${encoded(salt)}${encoded(key)}")


@pytest.mark.parametrize(
    "stored",
    [
        "",
        "plain",
        f"scrypt$x$8$1${SALT}${KEY}",
        f"scrypt$16384$8${SALT}${KEY}",
        f"scrypt$16384$8$1${SALT}$not base64!",
        f"scrypt$1024$8$1${SALT}${KEY}",
        f"scrypt$16385$8$1${SALT}${KEY}",
        f"scrypt$1048576$16$1${SALT}${KEY}",
        f"scrypt$16384$8$99${SALT}${KEY}",
        f"scrypt$16384$8$1$c2FsdA${KEY}",
        f"scrypt$16384$8$1${SALT}$a2V5",
        f"pbkdf2-sha256$1000${SALT}${KEY}",
        f"pbkdf2-sha256$99999999${SALT}${KEY}",
        f"md5$1${SALT}${KEY}",
    ],
)
def test_weak_costly_and_strange_hashes_are_refused(stored: str) -> None:
    for judge in (secret.check_hash, lambda one: secret.matches("t", one)):
        with pytest.raises(InvalidDescription):
            judge(stored)
