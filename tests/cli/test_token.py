"""`moorage token`: made, shown once, listed without its secret, revoked."""

import json
from pathlib import Path
from typing import Any

from moorage.tokens import listing, secret


def test_a_token_lives_from_create_to_revoke(offline: Any, tmp_path: Path) -> None:
    file = tmp_path / "tokens.yaml"
    offline.environment["MOORAGE_TOKEN_FILE"] = str(file)
    made = offline("token", "create", "ann", "--project", "shop", "--role", "Member")
    assert made.status == 0, made
    token = made.out.strip()
    assert "cannot be shown again" in made.err
    stored = listing.read(file)["ann"]
    assert (stored.user, stored.project, stored.roles) == ("ann", "shop", ("member",))
    assert secret.matches(token, stored.hash)
    assert token.rpartition(".")[2] not in file.read_text()
    again = offline("token", "create", "ann", "--project", "shop", "--role", "member")
    assert again.status == 4
    assert "ann" in again.err
    listed = offline("token", "list", "-f", "json")
    assert json.loads(listed.out)["tokens"] == [
        {"name": "ann", "user": "ann", "project": "shop", "roles": ["member"], "expires": None}
    ]
    assert offline("token", "revoke", "ann").status == 0
    assert listing.read(file) == {}
    assert offline("token", "revoke", "ann").status == 1


def test_an_end_may_be_a_time_or_a_duration(offline: Any, tmp_path: Path) -> None:
    file = str(tmp_path / "tokens.yaml")
    words = ("--token-file", file, "--project", "p", "--role", "admin", "-f", "json")
    made = offline.body("token", "create", "a", *words[:-2], "--expires", "2020-01-01T00:00:00Z")
    assert made["token"]["expires"] == "2020-01-01T00:00:00Z"
    assert made["token"]["secret"].startswith("moorage.a.")
    offline.body("token", "create", "b", *words[:-2], "--expires", "90d")
    text = offline("token", "list", "--token-file", file).out
    assert "2020-01-01T00:00:00Z (over)" in text
    assert text.count("(over)") == 1
    wrong = offline("token", "create", "c", *words[:-2], "--expires", "soon")
    assert wrong.status == 1
    assert "soon" in wrong.err


def test_without_a_file_nothing_is_made(offline: Any, tmp_path: Path) -> None:
    lost = offline("token", "list")
    assert lost.status == 1
    assert "MOORAGE_TOKEN_FILE" in lost.err
    missing = offline("token", "list", "--token-file", str(tmp_path / "none"))
    assert missing.status == 1
    assert "none" in missing.err
