"""Who is told and who ends servers: what is named must be there, and secrets stay secret."""

import sys
from pathlib import Path
from typing import Any

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.outward.nova_notifications import NovaNotifications
from moorage.settings import BadSetting, configure, read

NOVA = "[nova]\nauth_type = password\nauth_url = https://k.example/v3\npassword = pa$s%word\n"


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "hook"
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


def test_without_anything_nobody_is_told_and_nobody_ends_servers() -> None:
    found = configure(read({}, {}, ())).outward
    assert (found.end_servers, found.hook, found.webhook) == ("none", None, None)
    assert (found.timeout, found.attempts) == (10.0, 12)


def test_the_section_of_nova_is_read_and_its_password_is_masked(tmp_path: Path) -> None:
    file = tmp_path / "moorage.conf"
    file.write_text(f"[DEFAULT]\nend_servers = nova\n{NOVA}")
    effective = read({}, {}, (str(file),))
    assert configure(effective).outward.nova["password"] == "pa$s%word"
    shown = "\n".join(effective.lines())
    assert "[nova]" in shown
    assert "auth_url = https://k.example/v3" in shown
    assert "pa$s" not in shown
    described = {one["name"]: one["value"] for one in effective.described()}
    assert described["nova.password"] == "***"


def test_the_secret_of_the_webhook_is_in_a_file(tmp_path: Path, program: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(" s3cret\n")
    given = {"webhook": "https://h.example/x", "webhook_secret_file": str(secret)}
    found = configure(read({**given, "hook": str(program)}, {}, ())).outward
    assert (found.webhook_secret, found.hook) == ("s3cret", str(program))
    secret.write_text("\n")
    with pytest.raises(BadSetting, match="is empty"):
        configure(read(given, {}, ()))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"end_servers": "hook"}, "hook needs a hook"),
        ({"end_servers": "nova"}, r"needs a section \[nova\]"),
        ({"end_servers": "me"}, "must be one of"),
        ({"end_servers": "simulated"}, "is for simulations"),
        ({"move_servers": "simulated"}, "is for simulations"),
        ({"move_servers": "nova"}, r"needs a section \[nova\]"),
        ({"hook": "/nowhere/hook"}, "no program"),
        ({"hook": "/tmp"}, "no program"),
        ({"webhook_secret_file": "/nowhere/secret"}, "No such file"),
        ({"webhook": "ftp://h.example"}, "must be a URL"),
        ({"webhook": "https://["}, "must be a URL"),
        ({"webhook": "https://h.example:port"}, "must be a URL"),
        ({"outward_attempts": "0"}, "from 1 to 100"),
        ({"outward_timeout": "0s"}, "longer than nothing"),
    ],
)
def test_what_cannot_be_is_refused(given: dict[str, Any], problem: str) -> None:
    with pytest.raises(BadSetting, match=problem):
        configure(read(given, {}, ()))


BUS = "rabbit://nova:pa$s@10.0.0.1:5672,nova:pa$s@10.0.0.2:5672/cell1"


def test_the_bus_of_notifications_is_read_and_its_passwords_are_masked(tmp_path: Path) -> None:
    """Its library reads its section in the file; other sections of libraries are not used."""
    file = tmp_path / "moorage.conf"
    file.write_text(
        f"[DEFAULT]\nnova_notifications = {BUS}\n"
        "[oslo_messaging_rabbit]\nssl = true\n[oslo_messaging_notifications]\ndriver = noop\n"
    )
    effective = read({}, {}, (str(file),))
    outward = configure(effective).outward
    assert (outward.nova_notifications, outward.files) == (BUS, (str(file),))
    (ignored,) = effective.ignored
    assert "oslo_messaging_notifications" in ignored
    shown = ["\n".join(effective.lines()), *(one["value"] for one in effective.described())]
    assert not any("pa$s" in one for one in shown)
    with pytest.raises(BadSetting, match="must be a URL such as rabbit://") as caught:
        read({"nova_notifications": BUS.replace("rabbit", "amqp")}, {}, ())
    assert "pa$s" not in str(caught.value)


def test_a_bus_without_its_library_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "oslo_messaging", None)
    effective = read({"nova_notifications": BUS}, {}, ())
    with pytest.raises(BadSetting, match=r"needs the extra moorage\[notifications\]") as caught:
        configure(effective)
    assert "pa$s" not in str(caught.value)
    with pytest.raises(InvalidDescription, match=r"needs the extra moorage\[notifications\]"):
        NovaNotifications(BUS, (), lambda *_: None)
