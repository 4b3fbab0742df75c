"""The cloud's own database server and message broker, from a distribution's packages."""

import os
import shutil
import socket
import subprocess

from tests.minicloud.layout import Layout
from tests.minicloud.programs import NotUp, Program
from tests.servers.mariadb import find

DATABASES = ("keystone", "glance", "neutron", "nova_api", "nova_cell0", "nova_cell1", "heat")
_BROKERS = (
    "/usr/lib/rabbitmq/bin",
    "/usr/local/lib/rabbitmq/bin",
    "/usr/local/sbin",
    "/opt/homebrew/sbin",
)
_FAST = (
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-doublewrite=0",
    "--innodb-buffer-pool-size=128M",
    "--max-connections=1000",
    "--performance-schema=OFF",
    "--debug-no-sync",
)
"""Data that lives as long as the cloud need not survive the machine."""


def broker_program() -> str | None:
    """RabbitMQ's own script: the one on the PATH changes its user."""
    return shutil.which("rabbitmq-server", path=":".join(_BROKERS))


def check() -> None:
    """Raises NotUp: MariaDB or RabbitMQ is not installed."""
    missing = [
        package
        for package, found in (
            ("mariadb-server-core and mariadb-client", find("mariadbd")),
            ("rabbitmq-server", broker_program()),
        )
        if found is None
    ]
    if missing:
        raise NotUp(f"the cloud needs the packages {' and '.join(missing)}")


def listens(port: int) -> bool:
    with socket.socket() as made:
        made.settimeout(1)
        return made.connect_ex(("127.0.0.1", port)) == 0


def start_database(layout: Layout) -> Program:
    """An empty MariaDB with the services' databases; `root` needs no password on loopback."""
    program = Program(layout, "database")
    folder = layout.folder("database")
    data, first = folder / "data", folder / "first.sql"
    server, install = find("mariadbd"), find("mariadb-install-db")
    assert server is not None
    assert install is not None
    data.mkdir()
    first.write_text(
        "CREATE USER IF NOT EXISTS 'root'@'127.0.0.1';\n"
        "GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        + "".join(f"CREATE DATABASE IF NOT EXISTS {one};\n" for one in DATABASES)
    )
    common = ["--no-defaults", f"--datadir={data}", "--debug-no-sync"]
    if os.geteuid() == 0:
        common.append("--user=root")  # the server refuses to run as root unasked
    subprocess.run(
        [install, *common, "--skip-test-db", "--auth-root-authentication-method=normal"],
        cwd="/",
        check=True,
        capture_output=True,
        timeout=120,
    )
    program.start(
        server, *common, *_FAST,
        f"--port={layout.ports['database']}", "--bind-address=127.0.0.1", "--skip-log-bin",
        "--skip-name-resolve", f"--socket={folder}/socket", f"--tmpdir={folder}",
        f"--init-file={first}",
    )  # fmt: skip
    program.wait_until(lambda: listens(layout.ports["database"]))
    return program


def start_broker(layout: Layout) -> Program:
    """RabbitMQ as a node of its own, with a port mapper of its own, all on loopback."""
    program, names = Program(layout, "broker"), Program(layout, "broker-names")
    folder, ports = layout.folder("broker"), layout.ports
    found, mapper = broker_program(), shutil.which("epmd")
    assert found is not None
    assert mapper is not None
    erlang = {"ERL_EPMD_ADDRESS": "127.0.0.1", "ERL_EPMD_PORT": str(ports["broker-names"])}
    names.start(mapper, **erlang)
    names.wait_until(lambda: listens(ports["broker-names"]))
    (folder / "enabled_plugins").write_text("[].\n")
    (folder / "rabbitmq.conf").write_text(
        "loopback_users = none\nlog.console = true\nlog.file = false\n"
    )
    program.start(
        found,
        **erlang,
        HOME=str(folder),
        RABBITMQ_NODENAME="minicloud@localhost",
        RABBITMQ_NODE_IP_ADDRESS="127.0.0.1",
        RABBITMQ_NODE_PORT=str(ports["broker"]),
        RABBITMQ_DIST_PORT=str(ports["broker-nodes"]),
        RABBITMQ_MNESIA_BASE=str(folder / "data"),
        RABBITMQ_LOG_BASE=str(folder),
        RABBITMQ_CONFIG_FILE=str(folder / "rabbitmq.conf"),
        RABBITMQ_ENABLED_PLUGINS_FILE=str(folder / "enabled_plugins"),
        RABBITMQ_PID_FILE=str(folder / "node-pid"),
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS="-kernel inet_dist_use_interface {127,0,0,1}",
    )
    program.wait_until(lambda: listens(ports["broker"]))
    return program
