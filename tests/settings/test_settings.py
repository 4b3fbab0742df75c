"""One table, four places to say a value, and an error that names the place."""

import json
import os
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage import options, settings
from moorage.domain.period import DAY, HOUR, MINUTE, SECOND
from moorage.options import kinds
from moorage.settings import BadSetting, Effective, configure, read

Write = Callable[[str], str]
OTHERS = {"reservation": "/reservation", "compute": "/compute", "web": "/ui"}
"""Blazar's API and Nova's, where nobody says anything about them."""
MULTI = {setting.name for setting in options.SETTINGS if setting.multi}


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write(text: str) -> str:
        path = tmp_path / "moorage.conf"
        path.write_text(text)
        return str(path)

    return write


def test_without_anything_the_defaults_make_a_private_service(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    found = configure(read({}, {}, ()))
    assert (found.server.host, found.server.port, found.server.auth) == (
        "127.0.0.1",
        8778,
        "noauth2",
    )
    assert found.server.mounts == {"placement": "/placement", "native": "/v1", **OTHERS}
    assert found.database == f"sqlite:///{tmp_path}/moorage/moorage.db"
    assert found.database_directory == tmp_path / "moorage"
    assert found.server.workers == 1
    assert found.limits.default_hold == 10 * MINUTE
    assert found.limits.explanation_budget == found.limits.time_limit == 5 * SECOND
    assert (found.clock_file, found.server.pid_file) == (None, None)


@pytest.mark.parametrize(("cpus", "planners"), [(1, 1), (2, 2), (3, 2), (4, 2), (8, 4)])
def test_planners_suit_the_cpus(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, cpus: int, planners: int
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cpus)))
    database = f"sqlite:///{tmp_path}/moorage.db"
    assert configure(read({"database": database}, {}, ())).planners.processes == planners
    given = configure(read({"database": database, "planners": "1"}, {}, ()))
    assert given.planners.processes == 1
    assert configure(read({"database": "sqlite://"}, {}, ())).planners.processes == 0


def test_the_nearer_place_wins(write: Write) -> None:
    file = write("[DEFAULT]\nport = 1\nthreads = 31\nlog_level = error\n")
    environ = {"MOORAGE_PORT": "2", "MOORAGE_THREADS": "32"}
    found = read({"port": "3"}, environ, (file,))
    assert [found.values[name] for name in ("port", "threads", "log_level")] == [3, 32, "error"]
    assert found.sources["port"] == "command line, --port"
    assert found.sources["threads"] == "environment, MOORAGE_THREADS"
    assert found.sources["log_level"] == f"file {file}"
    assert found.sources["host"] == "default"


@pytest.mark.parametrize("setting", options.SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_can_be_said_in_every_place(write: Write, setting: Any) -> None:
    said = {
        "host": "::1",
        "port": "7",
        "database": "sqlite:////srv/a$b.db",
        "auth": "noauth2",
        "insecure": "true",
        "mount": "placement=/",
        "log_level": "debug",
        "debug": "true",
        "use_stderr": "true",
        "log_format": "json",
        "metrics_from": "10.0.0.0/8",
        "traces": "otlp",
        "idle_timeout": "10s",
        "worker_timeout": "10s",
        "arriving_limit": "300M",
        "body_timeout": "2m",
        "pid_file": "/run/m.pid",
        "clock_file": "/run/clock",
        "solve_time_limit": "3s",
        "explanation_time": "4",
        "objective": "room",
        "longest_time_limit": "PT9M",
        "request_time_limit": "2m",
        "hold_default": "90m",
        "longest_hold": "P1D",
        "claim_lifetime": "2h",
        "spent_claims": "refuse",
        "misplaced_members": "report",
        "foreign_servers": "refuse",
        "allocation_candidates_generation_strategy": "depth-first",
        "order_candidates_by_room": "true",
        "randomize_allocation_candidates": "true",
        "failed_builds": "elsewhere",
        "server_provider_grace": "2h",
        "offered_names": "50",
        "longest_claim": "2d",
        "lifetime": "30d",
        "project_lifetime": "p=forever",
        "notice": "1m",
        "preemption": "pending",
        "preemption_notice": "2d",
        "longest_lease": "90d",
        "longest_lead": "2h",
        "longest_cleaning": "1h",
        "lease_horizon": "400d",
        "quota_lease_units": "100",
        "quota_lease_unit_hours": "5000",
        "quota_window": "7d",
        "quota_lease_horizon": "90d",
        "quota_lease_max_length": "30d",
        "quota_leases": "12",
        "lease_check": "https://checks.example.org/leases",
        "lease_check_timeout": "3s",
        "lease_check_unanswered": "allow",
        "events_kept_for": "60d",
        "events_kept": "5000",
        "records_kept_for": "forever",
        "subscription_targets": "public",
        "delivery_patience": "2d",
        "delivery_timeout": "3s",
        "delivery_longest_wait": "30m",
        "threshold_interval": "1m",
        "host_settle_time": "1m",
        "compliance_sweep": "2h",
        "waitlist_time": "2s",
        "tenant_times": "15m",
        "end_servers": "none",
        "move_servers": "none",
        "moves_shown_to": "everyone",
        "automatic_plans": "repair",
        "automatic_plans_hourly": "9",
        "plan_parallel": "3",
        "plan_per_host": "2",
        "plan_failures": "4",
        "ticket_flavors": "none",
        "nova_sync": "never",
        "nova_notifications": "rabbit://nova:secret@127.0.0.1:5672/cell1",
        "topology_rules": "/etc/hostname",
        "hook": "/bin/true",
        "webhook": "https://hooks.example.org/moorage?team=ops",
        "webhook_secret_file": "/etc/hostname",
        "outward_timeout": "3s",
        "solver_queue": "5",
        "solver_workers": "5",
        "enforce_new_defaults": "yes",
        "pci_alias": '{"name": "gpu"}',
        "pci_in_placement": "yes",
        "image_metadata_prefilter": "yes",
        "query_placement_for_image_type_support": "yes",
        "session_key_file": "/etc/hostname",
        "session_lifetime": "8h",
        "embed_origins": "https://horizon.example:8443",
        "cors_allow_credentials": "no",
        "cors_allowed_origin": "https://site.example:8443",
        "cors_allow_header": "X-Auth-Token",
        "trusted_proxies": "10.0.0.0/24",
        "shadow": "http://controller:8778/placement",
        "shadow_source": "mysql://db/placement",
        "shadow_refresh": "1h",
    }
    pair = {
        "tls_cert": {"tls_key": "k"},
        "tls_key": {"tls_cert": "c"},
        "shadow_source": {"shadow": "http://controller:8778"},
    }.get(setting.name, {})
    text = said.get(setting.name, "17")
    expected = setting.type(text)
    for found in (
        read({setting.name: [text] if setting.multi else text, **pair}, {}, ()),
        read(pair, {f"MOORAGE_{setting.name.upper()}": text}, ()),
        read(pair, {}, (write(f"[DEFAULT]\n{setting.name} = {text}\n"),)),
    ):
        assert found.sources[setting.name] != "default"
        value = found.values[setting.name]
        assert expected in value if setting.multi else value == expected
        configure(found)


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("port", "x", "must be a whole number from 0 to 65535: 'x'"),
        ("port", "65536", "must be a whole number from 0 to 65535"),
        ("workers", "0", "must be a whole number from 1"),
        ("hold_default", "ten minutes", "must be a duration such as 10m or PT10M"),
        ("hold_default", "0s", "must be longer than nothing"),
        ("body_limit", "16X", "must be a size in bytes such as 16M"),
        ("log_level", "loud", "must be one of debug, info, warning, error"),
        ("auth", "none", "must be one of noauth2, token-file, keystone"),
        ("trusted_proxies", "proxy.example", "must be an IP address or a network"),
        ("trusted_proxies", "10.0.0.1/24", "must be an IP address or a network"),
        ("cors_allowed_origin", "dashboard.example", "must be an origin"),
        ("cors_allow_header", "x y", "must be the name of a header"),
        ("nova_notifications", "amqp://h/", "must be a URL such as rabbit://"),
        ("embed_origins", "*", "must be an origin"),
        ("embed_origins", "https://a.example 'self'", "must be an origin"),
        ("insecure", "maybe", "must be true or false"),
        ("host", "a b", "must be an IP address or a host name"),
        ("lifetime", "never", "must be a duration such as 10m or PT10M, or forever"),
        ("lifetime", "0s", "must be longer than nothing, or forever"),
        ("project_lifetime", "30d", "must be PROJECT=DURATION, or PROJECT=forever"),
        ("project_lifetime", "p=x", "must be a duration such as 10m or PT10M, or forever"),
        ("mount", "placement", "must be NAME=/PATH"),
        ("mount", "placement=relative", "must be NAME=/PATH"),
        ("mount", "placement=/a//b", "must be NAME=/PATH"),
        ("mount", "blazar=/", "blazar is none of compute, native, placement"),
    ],
)
def test_a_bad_value_names_the_setting_and_its_place(
    write: Write, name: str, text: str, problem: str
) -> None:
    file = write(f"[DEFAULT]\n{name} = {text}\n")
    variable = f"MOORAGE_{name.upper()}"
    option = f"command line, --{name.replace('_', '-')}"
    for given_, environ, files, source in (
        ({name: [text] if name in MULTI else text}, {}, (), option),
        ({}, {variable: text}, (), f"environment, {variable}"),
        ({}, {}, (file,), f"file {file}"),
    ):
        with pytest.raises(BadSetting) as caught:
            read(given_, environ, files)
        assert (caught.value.name, caught.value.source) == (name, source)
        assert f"setting {name} ({source}): {problem}" in str(caught.value)


def test_each_project_has_one_lifetime() -> None:
    found = configure(read({"lifetime": "30d", "project_lifetime": ["p=1d", "q=forever"]}, {}, ()))
    lifetimes = found.lifetimes
    assert [lifetimes.of(one) for one in ("p", "q", "r")] == [DAY, None, 30 * DAY]
    assert configure(read({}, {}, ())).lifetimes.default is None
    twice = read({}, {"MOORAGE_PROJECT_LIFETIME": "p=1d,p=2d"}, ())
    with pytest.raises(BadSetting, match="a project is named twice"):
        configure(twice)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[DEFAULT]\nprot = 1\n", "setting prot"),
        ("[apis]\nport = 1\n", "the only sections are [DEFAULT]"),
        ("[api]\nport = 1\n", "`moorage config convert`"),
        ("port = 1\n", "Section must be started"),
        ("[DEFAULT\n", "Invalid section"),
    ],
)
def test_a_file_with_anything_unknown_is_refused(write: Write, text: str, problem: str) -> None:
    file = write(text)
    with pytest.raises(BadSetting, match="file ") as caught:
        read({}, {}, (file,))
    assert problem in str(caught.value)


def test_a_misspelt_variable_is_found_and_not_the_clients() -> None:
    environ = {"MOORAGE_PROT": "1", "MOORAGE_PORT": "2", "MOORAGE_TOKEN": "t", "PROT": "9"}
    assert settings.strange_variables(environ) == ["MOORAGE_PROT"]


def test_a_named_file_must_exist_and_is_the_only_one(write: Write, tmp_path: Path) -> None:
    file = write("[DEFAULT]\nport = 5\n")
    named = tmp_path / "named.conf"
    named.write_text("[DEFAULT]\nthreads = 40\n")
    for found in (
        read({"config_file": str(named)}, {}, (file,)),
        read({}, {"MOORAGE_CONFIG_FILE": str(named)}, (file,)),
    ):
        assert (found.values["port"], found.values["threads"]) == (8778, 40)
    with pytest.raises(BadSetting, match="there is no file /nowhere"):
        read({"config_file": "/nowhere"}, {}, (file,))
    assert read({}, {}, (str(tmp_path / "missing"), file)).values["port"] == 5


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({"host": "0.0.0.0"}, "host"),
        ({"host": "example.org"}, "host"),
        ({"hold_default": "5h"}, "hold_default"),
        ({"claim_lifetime": "2d"}, "claim_lifetime"),
        ({"solve_time_limit": "2m"}, "solve_time_limit"),
        ({"threads": "9"}, "threads"),
        ({"mount": ["native=/placement"]}, "mount"),
        ({"tls_cert": "c"}, "tls_cert"),
        ({"tls_key": "k"}, "tls_key"),
        ({"auth": "token-file"}, "auth"),
        ({"auth": "keystone"}, "auth"),
        ({"mount": ["native=/", "placement=/"]}, "mount"),
        ({"shadow": "controller:8778"}, "shadow"),
        ({"shadow": "http://c:port"}, "shadow"),
        ({"shadow_source": "mysql://db/placement"}, "shadow_source"),
        ({"shadow": "http://c:1", "workers": "2"}, "workers"),
        ({"shadow": "http://c:1", "mount": ["placement="]}, "mount"),
    ],
)
def test_settings_that_do_not_go_together(values: dict[str, Any], name: str) -> None:
    with pytest.raises(BadSetting) as caught:
        configure(read(values, {}, ()))
    assert caught.value.name == name


@pytest.mark.parametrize(
    "values",
    [
        {"host": "0.0.0.0", "insecure": "true"},
        {"host": "0.0.0.0", "insecure": True},
        {"host": "localhost"},
        {"host": "127.8.9.1"},
        {"host": "::1"},
        {"host": "0.0.0.0", "auth": "token-file", "token_file": "tokens"},
        {"hold_default": "5h", "longest_hold": "6h"},
    ],
)
def test_settings_that_do(values: dict[str, Any]) -> None:
    configure(read(values, {}, ()))


@pytest.mark.parametrize(
    ("given_", "mounts"),
    [
        (["placement=/"], {"placement": "", "native": "/v1", **OTHERS}),
        (["native=", "reservation=", "compute="], {"placement": "/placement"}),
        (["web=", "reservation=", "compute="], {"placement": "/placement", "native": "/v1"}),
        (["placement=/a/b/", "native=/a"], {"placement": "/a/b", "native": "/a", **OTHERS}),
        (["placement=/x", "placement=/y"], {"placement": "/y", "native": "/v1", **OTHERS}),
    ],
)
def test_mounts_are_given_over_the_defaults(given_: list[str], mounts: dict[str, str]) -> None:
    assert configure(read({"mount": given_}, {}, ())).server.mounts == mounts
    environ = {"MOORAGE_MOUNT": ",".join(given_)}
    assert configure(read({}, environ, ())).server.mounts == mounts


def test_values_survive_the_way_to_a_child() -> None:
    effective = read({"mount": ["placement=/"], "longest_hold": "6h"}, {}, ())
    sent = json.loads(json.dumps(asdict(effective)))
    assert configure(Effective(**sent)) == configure(effective)


def test_what_is_shown_is_a_file_that_means_the_same_without_secrets(write: Write) -> None:
    shown = "\n".join(read({"mount": ["placement=/"], "body_limit": "3000"}, {}, ()).lines())
    again = read({}, {}, (write(shown),))
    assert again.values == read({"mount": ["placement=/"], "body_limit": "3000"}, {}, ()).values
    url = "postgresql://moorage:p$ss:w0rd@db/moorage"
    effective = read({"database": url}, {}, ())
    assert configure(effective).database == url
    text = "\n".join(effective.lines())
    assert "database = postgresql://moorage:***@db/moorage" in text
    assert "w0rd" not in text


@given(st.integers(min_value=1, max_value=2**50))
def test_a_size_is_shown_as_it_is_read(number: int) -> None:
    assert kinds.size(kinds.show_size(number)) == number


def test_durations_are_read_in_both_forms() -> None:
    for text in ("2h", "PT2H", "120m"):
        assert configure(read({"longest_hold": text}, {}, ())).limits.longest_hold == 2 * HOUR


def test_the_environment_of_others_is_never_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OS_DEFAULT__PORT", "1")
    monkeypatch.setenv("MOORAGE_PORT", "2")
    assert read({}, {}, ()).values["port"] == 8778
    assert settings.ENVIRONMENT_PREFIX == "MOORAGE_"


KEYSTONE = """
[keystone_authtoken]
auth_url = http://keystone.example/v3
password = p$ss=word
memcache_secret_key = hidden
transport = rabbit://me:hidden@host
"""


def test_the_section_of_keystone_passes_through_and_is_masked(write: Write) -> None:
    file = write("[DEFAULT]\nauth = keystone\n" + KEYSTONE)
    effective = read({}, {}, (file,))
    assert configure(effective).callers.keystone == {
        "auth_url": "http://keystone.example/v3",
        "password": "p$ss=word",
        "memcache_secret_key": "hidden",
        "transport": "rabbit://me:hidden@host",
    }
    shown = "\n".join(effective.lines())
    assert "auth_url = http://keystone.example/v3" in shown
    assert f"# file {file}" in shown
    assert "ss=word" not in shown
    assert "hidden" not in shown


def test_lists_in_the_environment_have_commas() -> None:
    environ = {"MOORAGE_CORS_ALLOWED_ORIGIN": "https://a, https://b", "MOORAGE_TRUSTED_PROXIES": ""}
    found = configure(read({}, environ, ())).server
    assert found.cors.allowed_origins == {"https://a", "https://b"}
    assert found.trusted_proxies == ()
    methods = configure(read({"cors_allow_method": ["GET"]}, {}, ())).server.cors.allow_methods
    assert methods == {"GET"}


def test_the_sync_with_nova_needs_a_login_and_its_rules(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"section \[nova\]"):
        configure(read({"nova_sync": "5m"}, {}, ()))
    with pytest.raises(BadSetting, match="is no file"):
        configure(read({"topology_rules": str(tmp_path / "none.yaml")}, {}, ()))
    (tmp_path / "racks.yaml").write_text("levels: {location: [rack]}\n")
    file = tmp_path / "moorage.conf"
    file.write_text(
        f"[DEFAULT]\nnova_sync = 5m\ntopology_rules = {tmp_path}/racks.yaml\n"
        "[nova]\nauth_type = none\n"
    )
    found = configure(read({"config_file": str(file)}, {}, ())).outward
    assert (found.nova_sync, found.topology_rules) == (5 * MINUTE, f"{tmp_path}/racks.yaml")
