"""The plug-in of the unmodified `openstack` client: the commands of `moorage`, by its session."""

import json
import subprocess
import sys
import tomllib
import uuid
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, distribution, distributions
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.cli.conftest import Cli, Result, clean
from tests.servers.nova import Nova, environment, running
from tests.servers.openstack_shell import BROKEN_ELSEWHERE, Ran, openstack

from moorage.cli import command_names
from moorage.cli.command_names import as_typed, entry_points, in_openstack
from moorage.cli.commands import COMMANDS
from moorage.cli.program import LazyCommand, Program
from moorage.client import registry

pytestmark = [
    pytest.mark.process,
    # The client's own deprecations are not ours to repair.
    pytest.mark.filterwarnings("ignore"),
]

ROOT = Path(__file__).parents[2]
OURS = "openstack.ensemble.v1"
SHARED = {name: words for name in COMMANDS if (words := in_openstack(name)) is not None}
"""The commands of both programs: the words in `moorage`, and those in `openstack`."""
Run = Callable[..., Ran]


@pytest.fixture(scope="session")
def endpoint(sim: Cli, state: Path) -> str:
    found = registry.known(registry.state_directory({"XDG_STATE_HOME": str(state)}), "shared")
    assert found is not None
    return found.endpoint


@pytest.fixture
def client(endpoint: str, state: Path) -> Run:
    """The client as the simulation's operator, without a catalog."""
    own = {"OS_AUTH_TYPE": "admin_token", "OS_TOKEN": "admin", "OS_ENDPOINT": endpoint}

    def run(*words: str, **more: str) -> Ran:
        return openstack(*words, environment=clean(state) | own | more)

    return run


@pytest.fixture
def shop(sim: Cli) -> Iterator[str]:
    """The name of an ensemble that is held."""
    name = f"shop-{uuid.uuid4().hex[:6]}"
    made = sim(
        *("ensemble", "create", "--server", "m1.small", "--count", "2"),
        *("--name", name, "--hold", "10m"),
    )
    assert made.status == 0, made
    yield name
    sim("ensemble", "delete", name, "--yes")


def without_blazar(err: str) -> str:
    """What a command said, without what another plug-in causes."""
    lines = err.splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(BROKEN_ELSEWHERE))


# --- its entry points ---


def installed() -> list[EntryPoint]:
    """Every entry point of the client and its plug-ins, ours left out."""
    return [
        one
        for every in distributions()
        if every.name != "moorage"
        for one in every.entry_points
        if one.group.startswith("openstack.")
    ]


def test_the_entry_points_are_those_of_the_table() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    wanted = entry_points()
    lines = "\n".join(f'{name} = "{value}"' for name, value in wanted.items())
    assert project["entry-points"][OURS] == wanted, f"pyproject.toml, [{OURS}]:\n{lines}"
    ours = distribution("moorage").entry_points.select(group=OURS)
    assert {one.name: one.value for one in ours} == wanted, "make install"


def test_no_command_of_another_is_shadowed() -> None:
    """The client takes the longest name that the words begin with, whoever has registered it."""
    others = {one.name.partition("_")[0] for one in installed() if "." in one.value}
    assert {"server", "policy", "quota", "resource", "reservation"} <= others
    assert not others & {words.split()[0] for words in SHARED.values()}


def test_no_option_of_the_client_is_taken_or_takes_one_of_a_command() -> None:
    """The client looks for its own options among those of commands, shortened ones too."""
    from openstackclient.shell import OpenStackShell

    own = OpenStackShell().parser._option_string_actions
    assert "--os-ensemble-endpoint-override" in own
    for name in SHARED:
        command = LazyCommand(name, COMMANDS[name]).load()(Program(), None, name)
        options = command.get_parser(name)._option_string_actions.keys() - {"-h", "--help"}
        taken = {one for one in options for other in own if begins(other, one)}
        assert not taken, name


def begins(option: str, shortened: str) -> bool:
    """Whether argparse takes the one for the other."""
    return option.startswith(shortened) if shortened.startswith("--") else option == shortened


def test_nothing_else_is_not_loaded_than_what_another_plug_in_misnames(client: Run) -> None:
    said = client("ensemble", "policy", "list").err
    assert [line.partition(":")[0] for line in said.splitlines()] == [BROKEN_ELSEWHERE]
    both = client("help", "reservation", "lease", "list").out
    assert "usage: " in both


# --- the same commands ---


@pytest.mark.parametrize("name", SHARED)
def test_help_names_the_commands_of_the_client(name: str) -> None:
    from openstackclient.shell import OpenStackShell

    shell = OpenStackShell()
    vars(shell)["client_manager"] = object()
    command = LazyCommand(name, COMMANDS[name]).load()(shell, None, SHARED[name])
    parser = command.get_parser(f"openstack {SHARED[name]}")
    told = parser.format_help()
    assert told.startswith(f"usage: openstack {SHARED[name]}")
    assert not [one for one in SHARED if f"moorage {one}" in told]


def same(one: Result, other: Ran) -> None:
    told = without_blazar(other.err)
    assert (other.status, other.out, told) == (one.status, one.out, one.err)


FORMS = ("table", "value", "csv", "json", "yaml")
LISTS = ("ensemble list", "ensemble show SHOP")
"""A list and a thing, whose output every push compares in each form; that of others in two."""


def outputs() -> Iterator[Any]:
    """Commands and forms; those of forms that others of the kind have too are for the night."""
    nouns = (
        *LISTS,
        *("ensemble list -c name -c status", "ensemble show SHOP -c id -c name"),
        *("member list SHOP", "decision list", "flavor list", "quota list"),
        *("policy show survive", "capacity show", "host show h1", "provider tree h1"),
        "topology show",
    )
    for number, words in enumerate(nouns):
        for form in FORMS:
            short = words in LISTS or form in {"table", FORMS[1 + number % 4]}
            yield pytest.param(words, form, marks=[] if short else [pytest.mark.nightly])


@pytest.mark.parametrize(("words", "form"), list(outputs()))
def test_the_output_is_that_of_moorage(
    sim: Cli, client: Run, shop: str, words: str, form: str
) -> None:
    typed = [shop if word == "SHOP" else word for word in words.split()]
    noun = next(name for name in SHARED if words.startswith(name))
    rest = [*typed[len(noun.split()) :], "-f", form]
    one, other = sim(*noun.split(), *rest), client(*SHARED[noun].split(), *rest)
    if one.out != other.out:  # the second has changed between them
        one = sim(*noun.split(), *rest)
    same(one, other)


def test_an_id_its_beginning_and_a_name_mean_the_same(client: Run, shop: str) -> None:
    whole = client("ensemble", "show", shop, "-f", "value", "-c", "id").out.strip()
    for text in (whole, whole[:8]):
        assert client("ensemble", "show", text, "-f", "value", "-c", "name").out.strip() == shop


def test_a_shortened_verb_has_its_columns(client: Run, shop: str) -> None:
    assert shop in client("ensemble", "li", "-f", "value", "-c", "name").out.split()


@pytest.mark.parametrize(
    ("words", "form"),
    [
        ("ensemble show nosuch", "table"),
        ("ensemble show nosuch", "json"),
        ("ensemble create --server m1.nosuch --name new", "table"),
        ("ensemble create --server m1.small --count 500 --name new", "value"),
        ("ensemble create -f nosuch.yaml", "table"),
        ("lease create --flavor m1.small --duration 1h --start 1999-01-01", "table"),
        ("lease create --server m1.small --duration 1h", "table"),
        ("decision renew nosuch --hold 1h", "yaml"),
        ("claim show 00000000-0000-4000-8000-000000000000", "json"),
    ],
)
def test_an_error_is_said_as_moorage_says_it(sim: Cli, client: Run, words: str, form: str) -> None:
    one, other = (run(*words.split(), "-f", form) for run in (sim, client))
    assert one.status != 0
    assert other.status == one.status
    assert without_request(other.out) == without_request(one.out)
    assert without_request(without_blazar(other.err)) == without_request(
        one.err.replace("moorage", "openstack")
    )


def without_request(text: str) -> str:
    import re

    return re.sub(r"req-[0-9a-f-]{36}|[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "ID", text)


def test_remedies_are_commands_of_the_client(client: Run, shop: str) -> None:
    refused = client("ensemble", "create", "--server", "m1.small", "--name", shop)
    assert refused.status == 4
    assert "change it: openstack ensemble set " in refused.err
    asked = client("ensemble", "confirm", shop)
    assert asked.status == 4
    assert "to keep them held: openstack decision renew " in asked.err
    wrong = client("capacity", "fit")
    assert (wrong.status, wrong.out) == (2, "")


def test_texts_name_the_commands_of_the_running_program() -> None:
    text = "see `moorage policy list`, moorage lease show x; moorage admin audit"
    assert as_typed(text) == text
    with command_names.running("openstack"):
        assert as_typed(text) == (
            "see `openstack ensemble policy list`, openstack lease show x; moorage admin audit"
        )


def test_from_a_description_to_claims(client: Run, tmp_path: Path) -> None:
    name = f"app-{uuid.uuid4().hex[:6]}"
    file = tmp_path / "app.yaml"
    described = {"name": name, "members": [{"name": "web", "flavor": "m1.small", "count": 2}]}
    file.write_text(yaml.safe_dump(described))

    def body(*words: str) -> Any:
        ran = client(*words, "-f", "json")
        assert ran.status == 0, ran
        return json.loads(ran.out)

    assert client("ensemble", "check", str(file)).status == 0
    made = body("ensemble", "apply", "--file", str(file), "--hold", "10m")
    assert client("ensemble", "diff", "--file", str(file)).status == 0
    ensemble = made["ensemble"]["id"]
    claim = body("claim", "create", name, "web[0]", "--flavor", "m1.small")["claim"]
    assert body("claim", "show", claim["id"])["claim"]["member"] == "web[0]"
    body("claim", "set", claim["id"], "--active", "--server", str(uuid.uuid4()))
    confirmed = body("ensemble", "confirm", name, "--yes")
    assert confirmed["released_members"] == ["web[1]"]
    assert body("ensemble", "quota", "set", "some-project", "--ensembles", "5")
    assert body("ensemble", "quota", "unset", "some-project")
    assert client("ensemble", "delete", ensemble, "--yes").status == 0


def test_servers_are_created_by_the_clients_session(client: Run, endpoint: str, shop: str) -> None:
    """`ensemble boot` reaches Nova as the client does, with its token."""
    with running(Nova(f"{endpoint}/placement")) as nova:
        refused = client("ensemble", "boot", shop, **environment(nova))
        assert (refused.status, "openstack ensemble set" in refused.err) == (1, True), refused
        words = ("ensemble", "boot", shop, "--image", "debian")
        booted = client(*words, **environment(nova))
        assert (booted.status, without_blazar(booted.err)) == (0, "")
        assert "2 of 2 servers active" in booted.out
        assert len(nova.created) == 2


# --- how the service is reached ---


@pytest.mark.parametrize("end", ["", "/", "/v1", "/placement"])
def test_one_endpoint_is_enough_with_either_end(client: Run, endpoint: str, end: str) -> None:
    for words in ("ensemble list", "ensemble provider tree h1"):
        ran = client(*words.split(), OS_ENDPOINT=endpoint + end)
        assert (ran.status, without_blazar(ran.err)) == (0, "")


def test_an_override_counts_instead(client: Run, endpoint: str) -> None:
    nowhere = {"OS_ENDPOINT": "http://127.0.0.1:1"}
    lost = client("ensemble", "list", **nowhere)
    assert lost.status == 1
    assert without_blazar(lost.err) == (
        "cannot reach Moorage at http://127.0.0.1:1: connection refused (is it running?)\n"
    )
    for url in (endpoint, f"{endpoint}/v1"):
        given = ("--os-ensemble-endpoint-override", url)
        assert client(*given, "ensemble", "list", **nowhere).status == 0
        variable = {"OS_ENSEMBLE_ENDPOINT_OVERRIDE": url}
        assert client("ensemble", "list", **nowhere, **variable).status == 0


def test_without_a_login_there_is_a_clear_refusal(client: Run, endpoint: str) -> None:
    words = ("--os-auth-type", "none", "--os-endpoint", endpoint, "ensemble", "list")
    ran = client(*words, OS_TOKEN="", OS_AUTH_TYPE="", OS_ENDPOINT="")
    assert ran.status == 5
    assert "403 ensemble.forbidden" in ran.err
    offline = client("ensemble", "policy", "list", OS_TOKEN="", OS_AUTH_TYPE="", OS_ENDPOINT="")
    assert offline.status == 0


def test_the_installed_program(endpoint: str, state: Path, shop: str) -> None:
    ran = subprocess.run(
        [
            str(Path(sys.executable).with_name("openstack")),
            *("--os-auth-type", "admin_token", "--os-token", "admin", "--os-endpoint", endpoint),
            *("ensemble", "show", shop, "-f", "value", "-c", "name"),
        ],
        env=clean(state),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (ran.returncode, ran.stdout) == (0, f"{shop}\n"), ran.stderr
