"""Roles of other projects: offered, accepted and revoked by their projects' own command lines."""

import uuid
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import Cli  # isort: skip

pytestmark = pytest.mark.process


def test_a_role_is_offered_accepted_applied_and_revoked(sim: Cli, tmp_path: Path) -> None:
    word = uuid.uuid4().hex[:8]
    store, data = sim.as_tenant(f"store-{word}"), sim.as_tenant(f"data-{word}")
    file = tmp_path / "market.yaml"
    web = {"name": "web", "count": 1, "flavor": "m1.small"}

    def written(count: int) -> tuple[str, str]:
        db = {**web, "name": "db", "count": count, "project": f"data-{word}"}
        body = {"name": f"market-{word}", "members": [web, db]}
        file.write_text(yaml.safe_dump(body), encoding="utf-8")
        return "-f", str(file)

    refused = store("ensemble", "apply", *written(1))
    assert refused.status == 4
    assert "moorage ensemble create -f FILE --describe-only" in refused.err
    made = store("ensemble", "create", *written(1), "--describe-only")
    assert "role db belongs to project data-" in made.out
    (share,) = data.body("share", "list")["shares"]
    assert store.body("share", "list")["shares"] == [share]
    assert data("ensemble", "show", f"market-{word}").status == 6
    accepted = data("share", "accept", share["id"][:8])
    assert accepted.out == (
        f"{share['id'][:8]}  accepted  role db of ensemble market-{word},"
        f" store-{word} to data-{word}\n"
    )
    assert data("share", "accept", share["id"]).status == 4
    assert store("ensemble", "apply", *written(1)).status == 0
    assert store("ensemble", "apply", *written(1)).out == "unchanged\n"
    assert data("ensemble", "show", f"market-{word}").status == 0
    flavors = data.body("decision", "flavors", f"market-{word}")["ticket_flavors"]
    assert [one["role"] for one in flavors] == ["db"]
    commands = data("decision", "flavors", f"market-{word}", "--commands").out
    assert f"--project data-{word}" in commands

    changed = store("ensemble", "apply", *written(2))
    assert changed.status == 0, changed
    assert "share offered" in changed.out
    (share,) = data.body("share", "list")["shares"]
    assert data("share", "accept", share["id"]).status == 0
    assert store("ensemble", "apply", *written(2)).status == 0
    dry = data("share", "revoke", share["id"], "--dry-run")
    assert "would be revoked" in dry.out
    assert "flavor     m1.small" in data("share", "show", share["id"]).out
    assert "revoked" in store("share", "revoke", share["id"]).out
    assert data("ensemble", "show", f"market-{word}").status == 6
    assert store("ensemble", "delete", f"market-{word}").status == 0


def test_a_project_without_shares_has_an_empty_list(sim: Cli) -> None:
    nobody = sim.as_tenant("nobody")
    assert nobody.body("share", "list")["shares"] == []
    assert nobody("share", "show", "1f2e").status == 6
    assert nobody("share", "list", "--all-projects").status == 5
