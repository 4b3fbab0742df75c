"""Starts and stops the whole cloud, and each of its services alone."""

import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import yaml
from tests.minicloud import backends, config_files, identity
from tests.minicloud.contents import fill
from tests.minicloud.layout import PASSWORD, Layout, inside, ours
from tests.minicloud.programs import Program

INSIDE = Path(__file__).parent / "inside"
BACKENDS = ("broker", "broker-names", "database")
_WSGI = {
    "keystone": "keystone.wsgi.api",
    "glance": "glance.wsgi.api",
    "neutron": "neutron.wsgi.api",
    "nova": "nova.wsgi.osapi_compute",
    "heat": "heat.wsgi.api",
}


class Cloud:
    """A cloud that was started, by this process or by another."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def program(self, name: str) -> Program:
        return Program(self.layout, name)

    @property
    def names(self) -> list[str]:
        """All programs, in the order in which they end."""
        computes = self.layout.computes
        return ["heat", "heat-engine", *computes, "scheduler", "conductor", "nova", "neutron",
                "glance", "moorage", "keystone", *BACKENDS]  # fmt: skip

    def start(self, name: str) -> None:
        """One service, until it answers; its data is what it was."""
        program = self.program(name)
        if name in _WSGI:
            program.start(
                inside("python"), str(INSIDE / "serve_wsgi.py"), _WSGI[name],
                str(self.layout.ports[name]), *self._options(name), **self._config_environ(name),
            )  # fmt: skip
            program.wait_until(lambda: answers(self.layout.url(name)))
        elif name == "moorage":
            file = self.layout.folder(name) / "moorage.conf"
            program.start(ours("moorage"), "serve", "--config-file", str(file))
            program.wait_until(lambda: answers(self.layout.url(name, "/readyz")))
        elif name == "heat-engine":
            program.start(inside(name), *self._options("heat"))
        else:
            config = ("--config-file", str(self.layout.folder(name) / "nova.conf"))
            if name in self.layout.computes:
                program.start(inside("python"), str(INSIDE / "nova_compute.py"), *config)
            else:
                program.start(inside(f"nova-{name}"), *config)

    def _options(self, name: str) -> list[str]:
        """Heat alone is told its configuration by an option."""
        file = self.layout.folder(name) / "heat.conf"
        return ["--config-file", str(file)] if name == "heat" else []

    def _config_environ(self, name: str) -> dict[str, str]:
        """Where a service's WSGI module looks for its configuration."""
        folder = self.layout.folder(name)
        files = {
            "keystone": str(folder / "keystone.conf"),
            "glance": "glance-api.conf",
            "neutron": "neutron.conf",
            "nova": "api-paste.ini;nova.conf",
        }
        if name not in files:
            return {}
        prefix = f"OS_{name.upper()}_CONFIG"
        return {f"{prefix}_DIR": str(folder), f"{prefix}_FILES": files[name]}

    def manage(self, program: str, service: str, *words: str) -> str:
        """What a service's own command for operators prints."""
        file = {"glance": "glance-api.conf"}
        config = str(self.layout.folder(service) / file.get(service, f"{service}.conf"))
        return self.run(inside(program), "--config-file", config, *words)

    def run(self, *words: str) -> str:
        """What a program of the cloud's environment prints.

        Raises:
            RuntimeError: it fails; with all that it printed.
        """
        ran = subprocess.run(
            words,
            env=self.layout.environ,
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )
        if ran.returncode:
            raise RuntimeError(
                f"{' '.join(words)}: {ran.returncode}\n{ran.stdout}{ran.stderr}"[-4_000:]
            )
        return ran.stdout

    def stop(self) -> None:
        """End everything, and remove what it wrote."""
        for names in (self.names[: -len(BACKENDS)], BACKENDS):
            with ThreadPoolExecutor() as pool:
                list(pool.map(lambda name: self.program(name).stop(), names))
        self.layout.remove()


def answers(url: str) -> bool:
    """Whether a service answers, with whatever status but an error of its own."""
    try:
        with urllib.request.urlopen(url, timeout=5):
            return True
    except urllib.error.HTTPError as error:
        return error.code < 500
    except OSError:
        return False


def start(layout: Layout, say: Callable[[str], None] = print) -> Cloud:
    """A new cloud with networks, images, flavors and projects.

    Raises:
        NotUp: a package is missing, or a program did not start.
    """
    backends.check()
    cloud = Cloud(layout)
    _write_plugins(layout)
    for write in (config_files.keystone, config_files.glance, config_files.neutron,
                  config_files.nova, config_files.heat, config_files.moorage):  # fmt: skip
        write(layout)
    for name in ("conductor", "scheduler"):
        config_files.nova_service(layout, name)
    for host in layout.computes:
        config_files.compute(layout, host)
    say("database and broker")
    with ThreadPoolExecutor() as pool:
        broker = pool.submit(backends.start_broker, layout)
        backends.start_database(layout)
        say("schemas")
        schemas = [
            pool.submit(one, cloud)
            for one in (_nova_schema, _neutron_schema, _glance_schema, _heat_schema)
        ]
        identity.prepare(layout)
        cloud.start("keystone")
        identity.populate(layout)
        say("keystone answers")
        for one in schemas:
            one.result()
        broker.result()
        say("services")
        for started in [
            pool.submit(cloud.start, one)
            for one in ("glance", "neutron", "nova", "heat", "moorage")
        ]:
            started.result()
        for name in ("conductor", "scheduler", *layout.computes, "heat-engine"):
            cloud.start(name)
    say("contents")
    fill(cloud)
    _write_clouds(layout)
    return cloud


def _nova_schema(cloud: Cloud) -> None:
    cloud.manage("nova-manage", "nova", "api_db", "sync")
    cell0 = cloud.layout.database("nova_cell0")
    cloud.manage("nova-manage", "nova", "cell_v2", "map_cell0", "--database_connection", cell0)
    cloud.manage("nova-manage", "nova", "cell_v2", "create_cell", "--name", "cell1")
    cloud.manage("nova-manage", "nova", "db", "sync")


def _neutron_schema(cloud: Cloud) -> None:
    cloud.manage("neutron-db-manage", "neutron", "upgrade", "heads")


def _glance_schema(cloud: Cloud) -> None:
    cloud.manage("glance-manage", "glance", "db_sync")


def _heat_schema(cloud: Cloud) -> None:
    cloud.manage("heat-manage", "heat", "db_sync")


def _write_plugins(layout: Layout) -> None:
    """Make what is no installed package found, as entry points of packages are."""
    folder = layout.folder("plugins")
    info = folder / "minicloud-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: minicloud\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        "[neutron.ml2.mechanism_drivers]\nagentless = agentless:AgentlessDriver\n"
        "[heat.stack_lifecycle_plugins]\n"
        "moorage = moorage.heat_plugin.lifecycle:MoorageLifecycle\n"
    )
    (folder / "agentless.py").write_text((INSIDE / "agentless.py").read_text())


def _write_clouds(layout: Layout) -> None:
    """A `clouds.yaml` for `openstack` and `moorage`: `admin`, and one cloud for each tenant."""
    people = {"admin": "admin", **identity.PEOPLE}
    clouds = {
        user: {
            "auth": {
                "auth_url": layout.identity,
                "username": user,
                "password": PASSWORD,
                "project_name": project,
                "user_domain_id": "default",
                "project_domain_id": "default",
            },
            "region_name": "RegionOne",
            "identity_api_version": 3,
        }
        for user, project in people.items()
    }
    (layout.home / "clouds.yaml").write_text(yaml.safe_dump({"clouds": clouds}))


def say(text: str) -> None:
    sys.stdout.write(f"minicloud: {text}\n")
    sys.stdout.flush()
