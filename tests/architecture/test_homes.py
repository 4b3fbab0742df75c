"""Some libraries have one home, and some packages may know only a few neighbours.

`.importlinter` keeps the floors apart; these rules are about files within a floor, which its
contracts cannot name. ADR-0002 gives the reasons.
"""

import ast
from collections.abc import Mapping
from fnmatch import fnmatch
from functools import cache
from pathlib import Path

import pytest

HOMES: Mapping[str, tuple[str, ...]] = {
    "ortools": ("solver/cpsat*.py",),
    "numba": ("engine/kernels/*", "solver/kernels/*"),
    "falcon": ("http/*", "api/*", "web/*", "testing/*"),
    "httptools": ("http/transport/*",),
    "sqlalchemy": ("store/*",),
    "alembic": ("store/*",),
    "psycopg": ("store/*",),
    "oslo_config": (
        "settings/*",
        "http/cors.py",
        "http/keystone.py",
        "http/policy_file.py",
        "outward/nova_notifications.py",
        "nova_filter/host_filter.py",  # in nova-scheduler's process
        "heat_plugin/options.py",  # in heat-engine's
    ),
    "oslo_messaging": ("outward/nova_notifications.py",),
    "oslo_middleware": ("http/cors.py",),
    "oslo_upgradecheck": ("cli/admin_upgrade_checks.py",),
    "oslo_policy": ("http/policy_file.py",),
    "keystonemiddleware": ("http/*",),
    "httpx": ("client/*", "outward/webhook.py", "outward/subscriber.py", "testing/*"),
    "cliff": ("cli/*",),
    "rich": ("cli/*",),
    "prometheus_client": ("telemetry/*",),
    "opentelemetry": ("telemetry/traces.py",),
}
"""Library -> files that may import it, as patterns below src/moorage."""

SERVER_SIDE = {
    "app",
    "service_environment",
    "service_workers",
    "service",
    "settings",
    "api",
    "web",
    "http",
    "store",
    "solver",
    "workers",
    "outward",
    "usecases",
    "engine",
}
"""What the base install cannot run: it needs the extras, and belongs behind the API."""

STARTS_A_SERVER = {"serve", "config", "sim", "demo", "admin", "token"}
"""Commands that run the server side, or read its settings; all others talk to it."""


@cache  # every rule looks at most of the files
def imports(source: str) -> frozenset[str]:
    """Every module imported anywhere in the file, inside functions and TYPE_CHECKING too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return frozenset(found)


def modules_below(package: Path, name: str) -> list[Path]:
    return sorted((package / name).rglob("*.py"))


def strangers(imported: str, allowed: set[str]) -> bool:
    """Whether a first-party import goes outside the allowed parts of moorage."""
    parts = imported.split(".")
    return parts[0] == "moorage" and len(parts) > 1 and parts[1] not in allowed


@pytest.mark.parametrize("library", sorted(HOMES))
def test_a_library_stays_in_its_home(package: Path, library: str) -> None:
    found = [
        str(path.relative_to(package))
        for path in sorted(package.rglob("*.py"))
        if any(name.split(".")[0] == library for name in imports(path.read_text(encoding="utf-8")))
    ]
    away = [name for name in found if not any(fnmatch(name, pattern) for pattern in HOMES[library])]
    assert not away, f"only {', '.join(HOMES[library])} may import {library}, not {away}"


def test_a_node_agent_is_client_and_domain_only(package: Path) -> None:
    found = [
        f"{path.relative_to(package)}: {name}"
        for path in modules_below(package, "agent")
        for name in imports(path.read_text(encoding="utf-8"))
        if strangers(name, {"agent", "client", "domain"})
    ]
    assert not found, "a compute node installs the base only:\n" + "\n".join(found)


def test_only_commands_that_start_a_server_import_one(package: Path) -> None:
    cli = package / "cli"
    found = []
    for path in modules_below(package, "cli"):
        noun = path.relative_to(cli).parts[0].removesuffix(".py")
        if noun.split("_")[0] in STARTS_A_SERVER:
            continue
        found += [
            f"{path.relative_to(package)}: {name}"
            for name in imports(path.read_text(encoding="utf-8"))
            if name.startswith("moorage.") and name.split(".")[1] in SERVER_SIDE
        ]
    assert not found, "commands talk to the API through moorage.client:\n" + "\n".join(found)


def test_imports_are_found_wherever_they_hide() -> None:
    source = "from moorage import solver\ndef f():\n    import ortools.sat.python.cp_model\n"
    assert {"moorage.solver", "ortools.sat.python.cp_model"} <= imports(source)
    assert strangers("moorage.store.schema.tables", {"agent", "client"})
    assert not strangers("moorage.client.api", {"agent", "client"})
    assert not strangers("httpx", {"agent"})
