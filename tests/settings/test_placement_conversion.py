"""placement.conf becomes moorage.conf: no option of the reference's own list is forgotten."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from oslo_config import cfg, types

from moorage.engine.candidates.limit import CandidateLimit
from moorage.settings import BadSetting, configure, read, settle
from moorage.settings.placement_conversion import Conversion, Outcome, convert, options_of

pytestmark = pytest.mark.filterwarnings("ignore:'cgi' is deprecated:DeprecationWarning")

Converted = Callable[..., Conversion]
NOBODY = "00000000-0000-0000-0000-000000000000"


@pytest.fixture
def converted(tmp_path: Path) -> Converted:
    def converted(text: str, database: str | None = "sqlite:////srv/ledger.db") -> Conversion:
        file = tmp_path / "placement.conf"
        file.write_text(text)
        return convert([str(file)], database)

    return converted


def reference_options() -> list[tuple[str, Any]]:
    """Section and option of all that openstack-placement registers, by its own hand."""
    from keystonemiddleware import auth_token  # here: webob, below both, warns when it is imported
    from placement import conf as placement_conf

    conf = cfg.ConfigOpts()
    placement_conf.register_opts(conf)
    found = [("DEFAULT", one["opt"]) for one in conf._opts.values()]
    for name, group in conf._groups.items():
        found += [(name, one["opt"]) for one in group._opts.values()]
    found += [("keystone_authtoken", one) for _, some in auth_token.list_opts() for one in some]
    command_line_only = {"config_file", "config_dir", "config_source", "shell_completion"}
    return [(section, one) for section, one in found if one.dest not in command_line_only]


def plausible(option: Any) -> str:
    """A value of an option's type, other than its default where that matters."""
    if isinstance(option.type, types.Boolean):
        return "True"
    if isinstance(option.type, types.Integer | types.Float):
        return "200000"
    choices = getattr(option.type, "choices", None)
    return next(iter(choices)) if choices else f"of-{option.dest}"


def test_no_option_of_the_reference_is_forgotten(converted: Converted, tmp_path: Path) -> None:
    options = reference_options()
    assert len(options) > 100
    sections: dict[str, list[str]] = {}
    for section, option in options:
        sections.setdefault(section, []).append(f"{option.dest} = {plausible(option)}")
    found = converted(
        "\n".join("\n".join([f"[{name}]", *lines]) for name, lines in sections.items())
    )
    told = {one.option: one for one in found.options}
    for section, option in options:
        one = told.pop(f"[{section}] {option.dest}")
        assert one.detail
        assert "no such option" not in one.detail
    assert all("default there" in one.detail for one in told.values()), told
    text = "\n".join(found.lines())
    for one in found.options:
        if one.outcome in {Outcome.NOT_NEEDED, Outcome.BY_HAND}:
            assert f"# {one.outcome}: {one.option}: {one.detail}" in text
    by_hand = {one.option for one in found.options if one.outcome is Outcome.BY_HAND}
    assert by_hand == {
        "[placement] incomplete_consumer_project_id",
        "[placement] incomplete_consumer_user_id",
        "[oslo_policy] policy_dirs",
        "[oslo_middleware] enable_proxy_headers_parsing",
        "[cors] allowed_origin",  # the value above is no origin
    }


CONF = """
[DEFAULT]
debug = on
logdir = $state_path/log
state_path = /var/lib/placement
[api]
auth_strategy = noauth2
[placement_database]
connection = mysql+pymysql://placement:hidden@db/placement?charset=utf8
[placement]
incomplete_consumer_project_id = 00000000-0000-0000-0000-000000000000
randomize_allocation_candidates = True
max_allocation_candidates = 100000
allocation_candidates_generation_strategy = depth-first
[cors]
allowed_origin = https://a.example,https://b.example
max_age = 60
[oslo_policy]
policy_file = rules.yaml
enforce_new_defaults = False
[oslo_middleware]
max_request_body_size = 114688
[oslo_concurrency]
lock_path = /tmp
"""


@pytest.mark.parametrize(("text", "most"), [("-1", None), ("-7", None), ("0", 1), ("5", 5)])
def test_a_bound_of_candidates_is_what_the_reference_makes_of_it(
    converted: Converted, tmp_path: Path, text: str, most: int | None
) -> None:
    found = converted(
        f"[api]\nauth_strategy = noauth2\n[placement]\nmax_allocation_candidates = {text}\n"
    )
    file = tmp_path / "moorage.conf"
    file.write_text("\n".join(found.lines()))
    made = configure(read({"config_file": [str(file)]}, {}, ()))
    assert made.candidates == CandidateLimit(most, depth_first=True)  # the default there


def test_a_bound_that_is_not_named_is_the_default_here_and_leaves_out_no_host(
    converted: Converted, tmp_path: Path
) -> None:
    strategy = "allocation_candidates_generation_strategy = depth-first"
    found = converted(f"[api]\nauth_strategy = noauth2\n[placement]\n{strategy}\n")
    told = {one.option: one.detail for one in found.options}
    assert told["[placement] max_allocation_candidates"].startswith(
        "max_allocation_candidates = auto, the default here"
    )
    file = tmp_path / "moorage.conf"
    file.write_text("\n".join(found.lines()))
    made = configure(read({"config_file": [str(file)]}, {}, ()))
    assert made.candidates == CandidateLimit(1_000, every_tree=True)


def test_sections_of_libraries_that_are_not_used_are_not_needed(converted: Converted) -> None:
    found = converted("[cache]\nenabled = true\n[oslo_concurrency]\nlock_path = /tmp\n")
    told = {one.option: one.outcome for one in found.options}
    assert told["section [cache]"] == told["section [oslo_concurrency]"] == Outcome.NOT_NEEDED


def test_the_result_means_the_same(converted: Converted, tmp_path: Path) -> None:
    found = converted(CONF)
    file = tmp_path / "moorage.conf"
    file.write_text("\n".join(found.lines()))
    made = configure(read({"config_file": [str(file)]}, {}, ()))
    assert made.database == "sqlite:////srv/ledger.db"
    assert (made.server.auth, made.server.log.level) == ("noauth2", "debug")
    assert made.server.log.file == "/var/lib/placement/log/moorage.log"
    assert made.server.cors.allowed_origins == {"https://a.example", "https://b.example"}
    assert made.rules.file == str(tmp_path / "rules.yaml")
    assert not made.rules.new_defaults
    assert made.candidates == CandidateLimit(100_000, depth_first=True, randomize=True)
    assert made.server.bounds.body == 114_688
    assert "hidden" not in file.read_text()
    assert not [one for one in found.options if one.outcome is Outcome.BY_HAND]


def test_defaults_that_are_others_here_are_written_out(
    converted: Converted, tmp_path: Path
) -> None:
    (tmp_path / "policy.yaml").write_text("{}")
    (tmp_path / "policy.d").mkdir()
    (tmp_path / "policy.d" / "more.yaml").write_text("{}")
    found = converted("[placement_database]\nconnection = sqlite:////p.db\n", None)
    assert {name: texts[0] for name, (texts, _) in found.settings.items()} == {
        "auth": "keystone",
        "enforce_new_defaults": "true",
        "policy_file": str(tmp_path / "policy.yaml"),
    }
    by_hand = {one.option: one.detail for one in found.options if one.outcome is Outcome.BY_HAND}
    assert set(by_hand) == {
        "[placement_database] connection",
        "[oslo_policy] policy_dirs",
        "database",
    }
    assert "policy.d" in by_hand["[oslo_policy] policy_dirs"]


@pytest.mark.parametrize(
    ("text", "option", "detail"),
    [
        ("[placement]\nrandomise = 1\n", "[placement] randomise", "no such option"),
        ("[nova]\nx = 1\n", "section [nova]", "no such section"),
        ("[DEFAULT]\ndebug = perhaps\n", "[DEFAULT] debug", "debug must be true or false"),
        ("[DEFAULT]\nuse_json = perhaps\n", "[DEFAULT] use_json", "must be true or false"),
        ("[DEFAULT]\nlog_file = $nowhere/log\n", "[DEFAULT] log_file", "refers to another option"),
    ],
)
def test_what_cannot_be_carried_is_left_to_do(
    converted: Converted, text: str, option: str, detail: str
) -> None:
    found = {one.option: one for one in converted(text).options}[option]
    assert found.outcome is Outcome.BY_HAND
    assert detail in found.detail


@pytest.mark.parametrize(
    "password",
    ['"', '"quoted"', "'quoted'", " blanks ", "tab\t", "", 'half"', '"half', "a = b # c", "%(x)s"],
)
def test_a_value_reads_back_as_it_was(converted: Converted, tmp_path: Path, password: str) -> None:
    found = converted(f"[keystone_authtoken]\npassword = '{password}'\n")
    file = tmp_path / "moorage.conf"
    file.write_text("\n".join(found.lines()))
    assert read({"config_file": [str(file)]}, {}).keystone == {"password": password}


def test_a_value_of_several_lines_reads_back_as_it_was(
    converted: Converted, tmp_path: Path
) -> None:
    found = converted("[keystone_authtoken]\npassword = 'one'\n  [two]\n  'three'\n")
    assert found.keystone == {"password": "one\n[two]\n'three'"}
    file = tmp_path / "moorage.conf"
    file.write_text("\n".join(found.lines()))
    assert read({"config_file": [str(file)]}, {}).keystone == found.keystone


def test_credentials_of_another_section_come_along(converted: Converted) -> None:
    found = converted(
        "[DEFAULT]\nhost_url = http://k\n"
        "[keystone_authtoken]\nauth_section = service\nmemcached_servers = m:11211\n"
        "[service]\nauth_type = password\nauth_url = $host_url/v3\npassword = pa$$word\n"
    )
    assert found.keystone == {
        "auth_type": "password",
        "auth_url": "http://k/v3",
        "password": "pa$word",
        "memcached_servers": "m:11211",
    }
    told = {one.option: one for one in found.options}
    assert told["[service] password"].detail == "[keystone_authtoken] password = ***"
    assert "pa$word" not in str(found.options)


def test_references_are_followed_as_oslo_config_does(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(
        "[DEFAULT]\nbase = /srv\nstate_path = $base/state\nround = $round\n[API]\nname = api\n"
        "[placement_database]\nname = own\none = ${state_path}/x\ntwo = $name\nthree = $api.name\n"
        "four = p$$w\nfive = p\\$w\nsix = $nowhere\nseven = $round\neight = $1\n"
    )
    found = options_of([str(file)])["placement_database"]
    texts = {name: one.text for name, one in found.items()}
    assert texts == {
        "name": "own",
        "one": "/srv/state/x",
        "two": "own",
        "three": "api",
        "four": "p$w",
        "five": "p$w",
        "six": "$nowhere",
        "seven": "$round",
        "eight": "$1",
    }
    assert {name for name, one in found.items() if one.unresolved} == {"six", "seven"}


@pytest.mark.parametrize("said", ["", "[oslo_policy]\npolicy_file = policy.yaml\n"])
def test_a_policy_file_is_looked_for_beside_all_files(tmp_path: Path, said: str) -> None:
    main, more = tmp_path / "placement.conf", tmp_path / "placement.conf.d" / "50.conf"
    more.parent.mkdir()
    main.write_text("")
    more.write_text(said)
    beside = tmp_path / "policy.yaml"
    beside.write_text("")
    found = convert([str(main), str(more)])
    assert found.settings["policy_file"][0] == (str(beside),)
    nearer = more.parent / "policy.yaml"
    nearer.write_text("")
    found = convert([str(main), str(more)])
    assert found.settings["policy_file"][0] == (str(nearer),)


def test_the_environment_wins_and_is_named(tmp_path: Path) -> None:
    file = tmp_path / "placement.conf"
    file.write_text("[api]\nauth_strategy = keystone\n[DEFAULT]\nport = 8778\n")
    variables = {
        "OS_API__AUTH_STRATEGY": "noauth2",
        "OS_KEYSTONE_AUTHTOKEN__PASSWORD": "p$$w",
        "OS_NONSENSE__NAME": "x",
        "OS_PLACEMENT_CONFIG_DIR": "/x",
    }
    found = convert([str(file)], "sqlite:////srv/ledger.db", variables)
    assert found.keystone == {"password": "p$w"}
    effective = settle(found.values(), {}, {})
    assert effective.values["auth"] == "noauth2"
    assert effective.sources["auth"] == ("environment, OS_API__AUTH_STRATEGY, [api] auth_strategy")
    assert effective.sources["port"] == f"file {file}, [DEFAULT] port"


@pytest.mark.parametrize(
    "text", ["[placement]\nmax_allocation_candidates = lots", "[DEFAULT]\nport = -1"]
)
def test_a_value_that_is_none_is_told_with_its_file(tmp_path: Path, text: str) -> None:
    file = tmp_path / "placement.conf"
    file.write_text(text)
    with pytest.raises(BadSetting, match=r"placement\.conf"):
        convert([str(file)]).require_valid()
