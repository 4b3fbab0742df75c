"""`moorage config convert`: the file that is written, and what is left to do."""

from pathlib import Path

import pytest
from tests.cli.conftest import Cli

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

CONF = """
[api]
auth_strategy = keystone
[keystone_authtoken]
www_authenticate_uri = http://k.example
auth_url = http://k.example/v3
auth_type = password
username = placement
password = hidden
signing_dir = /tmp
[oslo_policy]
policy_file = rules.yaml
enforce_new_defaults = True
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "placement.conf"
    file.write_text(CONF)
    (tmp_path / "rules.yaml").write_text('"placement:reshaper:reshape": "!"\n')
    return file


def test_the_service_reads_what_is_written(source: Path, offline: Cli, tmp_path: Path) -> None:
    words = ("config", "convert", str(source), "-o", "moorage.conf")
    done = offline(*words, "--database", "sqlite:////srv/x.db", "-f", "json")
    assert done.status == 0, done
    assert "hidden" not in done.out
    told = {one["option"]: one for one in done.body["options"]}
    assert told["[keystone_authtoken] signing_dir"]["outcome"] == "not needed"
    assert (
        "keystonemiddleware has no such option"
        in told["[keystone_authtoken] signing_dir"]["detail"]
    )
    written = tmp_path / "moorage.conf"
    assert written.stat().st_mode & 0o777 == 0o600
    assert "password = hidden" in written.read_text()
    shown = offline.body("config", "show", "auth", "policy_file", "database")["settings"]
    assert [one["value"] for one in shown] == [
        "sqlite:////srv/x.db",
        "keystone",
        str(tmp_path / "rules.yaml"),
    ]
    again = offline(*words)
    assert again.status == 2
    assert "--force replaces it" in again.err
    assert offline(*words, "--force").status == 4, "no database is named"


def test_a_file_that_all_could_read_is_replaced_by_a_private_one(
    source: Path, offline: Cli, tmp_path: Path
) -> None:
    written = tmp_path / "moorage.conf"
    written.write_text("old")
    written.chmod(0o644)
    with written.open() as reader:
        words = ("config", "convert", str(source), "-o", str(written), "--database", "sqlite:////x")
        assert offline(*words, "--force").status == 0
        assert reader.read() == "old", "who reads the old file sees nothing of the new one"
    assert written.stat().st_mode & 0o777 == 0o600
    assert "password = hidden" in written.read_text()
    assert not list(tmp_path.glob(".moorage.conf.*")), "nothing is left beside it"


def test_rules_of_other_dialects_are_known(source: Path, offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text('"os_compute_api:os-server-groups:index": "!"\n')
    words = ("config", "convert", str(source), "-o", "out.conf", "--database", "sqlite:////x")
    done = offline(*words)
    assert done.status == 0, done


@pytest.mark.parametrize(
    ("rules", "words"),
    [
        ('"placement:nonsense": "!"\n', "there is no rule placement:nonsense"),
        (None, "cannot read"),
    ],
)
def test_rules_that_cannot_be_used_are_left_to_do(
    source: Path, offline: Cli, tmp_path: Path, rules: str | None, words: str
) -> None:
    file = tmp_path / "rules.yaml"
    file.unlink() if rules is None else file.write_text(rules)
    done = offline(
        *("config", "convert", str(source), "-o", "out.conf", "--database", "sqlite:////x", "-f"),
        "json",
    )
    assert done.status == 4
    left = [one for one in done.body["options"] if one["outcome"] == "by hand"]
    assert [one["option"] for one in left] == ["policy file"]
    assert words in left[0]["detail"]


def test_what_is_no_configuration_file_is_refused(offline: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.conf").write_text("no section\n")
    done = offline("config", "convert", str(tmp_path / "bad.conf"), "-o", str(tmp_path / "o.conf"))
    assert done.status == 2, done
    assert "bad.conf" in done.err
    assert not (tmp_path / "o.conf").exists()
