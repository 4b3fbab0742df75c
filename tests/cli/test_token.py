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
    assert "it is shown once" in made.err
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
    assert "2020-01-01T00:00:00Z (expired)" in text
    assert text.count("(expired)") == 1
    wrong = offline("token", "create", "c", *words[:-2], "--expires", "soon")
    assert wrong.status == 2
    assert "soon" in wrong.err


def test_without_a_file_nothing_is_made(offline: Any, tmp_path: Path) -> None:
    lost = offline("token", "list")
    assert lost.status == 2
    assert "MOORAGE_TOKEN_FILE" in lost.err
    assert "token_file" in lost.err
    missing = offline("token", "list", "--token-file", str(tmp_path / "none"))
    assert missing.status == 1
    assert "none" in missing.err


def test_the_file_is_the_one_that_the_service_reads(offline: Any, tmp_path: Path) -> None:
    config, file = tmp_path / "moorage.conf", tmp_path / "tokens.yaml"
    config.write_text(f"[DEFAULT]\nauth = token-file\ntoken_file = {file}\n", encoding="utf-8")
    words = ("--project", "p", "--role", "member", "--config-file", str(config))
    assert offline("token", "create", "ann", *words).status == 0
    assert list(listing.read(file)) == ["ann"]


def test_only_roles_that_some_rule_names_are_given_by_role(offline: Any, tmp_path: Path) -> None:
    words = ("token", "create", "ann", "--project", "p", "--token-file", str(tmp_path / "t.yaml"))
    wrong = offline(*words, "--role", "membr")
    assert wrong.status == 2
    assert "no such role: membr; did you mean member?" in wrong.err
    assert "--custom-role" in wrong.err
    for words_of_two in ("member,admin", "member admin"):
        refused = offline(*words, "--custom-role", words_of_two)
        assert refused.status == 1
        assert "is not the name of one role" in refused.err
    none = offline(*words)
    assert none.status == 2
    assert "no role:" in none.err
    assert not (tmp_path / "t.yaml").exists()
    made = offline(*words, "--role", "Reader", "--custom-role", "Shop-Auditor")
    assert made.status == 0, made
    assert listing.read(tmp_path / "t.yaml")["ann"].roles == ("reader", "shop-auditor")
