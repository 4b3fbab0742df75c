"""How a role's servers are created: what is read, and what is refused by name."""

from typing import Any

import pytest

from moorage.domain.describe import read_role
from moorage.domain.describe_server_options import MAX_USER_DATA, read_server_options
from moorage.domain.errors import InvalidDescription
from moorage.domain.nova_servers import ServerOptions


def test_everything_is_read() -> None:
    found = read_server_options(
        {
            "image": "debian",
            "networks": ["front", "back"],
            "key_name": "ann",
            "user_data": "#!/bin/sh\n",
            "security_groups": ["web"],
            "config_drive": True,
            "metadata": {"tier": "gold"},
        },
        "members[0].server",
    )
    assert found.networks == ("front", "back")
    assert found.metadata == {"tier": "gold"}
    assert found.config_drive is True


def test_nothing_is_needed() -> None:
    assert read_server_options({}, "server") == ServerOptions()
    assert read_role({"name": "db", "flavor": "small"}, "members[0]").server is None


@pytest.mark.parametrize("alone", ["auto", "none"])
def test_a_word_stands_for_the_networks(alone: str) -> None:
    assert read_server_options({"networks": alone}, "server").networks == (alone,)
    with pytest.raises(InvalidDescription, match="stand alone"):
        read_server_options({"networks": [alone, "front"]}, "server")


@pytest.mark.parametrize(
    ("wrong", "path"),
    [
        ({"imag": "debian"}, "s.imag"),
        ({"image": ""}, "s.image"),
        ({"image": 7}, "s.image"),
        ({"networks": {"uuid": "x"}}, "s.networks"),
        ({"networks": [{"uuid": "x"}]}, "s.networks[0]"),
        ({"networks": ["n"] * 65}, "s.networks"),
        ({"user_data": "ü" * (MAX_USER_DATA // 2 + 1)}, "s.user_data"),
        ({"user_data": b"raw"}, "s.user_data"),
        ({"config_drive": "yes"}, "s.config_drive"),
        ({"volume_gb": 0}, "s.volume_gb"),
        ({"volume_gb": True}, "s.volume_gb"),
        ({"metadata": {"moorage:member": "db[0]"}}, "s.metadata.moorage:member"),
        ({"metadata": {"a/b": "c"}}, "s.metadata"),
        ({"metadata": {"a": 1}}, "s.metadata.a"),
        ({"metadata": {"a": "c" * 256}}, "s.metadata.a"),
        ({"metadata": {f"a{i}": "c" for i in range(121)}}, "s.metadata"),
        (["debian"], "s"),
    ],
)
def test_what_nova_would_refuse_is_refused_by_name(wrong: Any, path: str) -> None:
    with pytest.raises(InvalidDescription) as refused:
        read_server_options(wrong, "s")
    assert refused.value.path == path
