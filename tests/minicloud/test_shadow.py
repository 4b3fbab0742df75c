"""Nova works with the reference Placement, through a shadow: what Moorage would have answered."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.minicloud import moves
from tests.minicloud.admin import admin
from tests.minicloud.cloud import Cloud
from tests.minicloud.config_files import account, write
from tests.minicloud.layout import ours
from tests.minicloud.tenant import Operator, Tenant, eventually
from tests.servers.reference import reference

CONF = """
[api]
auth_strategy = keystone
[placement_database]
connection = {{url}}
sync_on_startup = True
[DEFAULT]
log_file = {{log}}
[keystone_authtoken]
{section}
"""


@contextmanager
def shadowed(cloud: Cloud, folder: Path) -> Iterator[Path]:
    """The reference is the cloud's Placement, with Moorage before it; the report's file."""
    database = f"sqlite:///{folder}/placement.db"
    section = account(cloud.layout, "moorage") | {"www_authenticate_uri": cloud.layout.identity}
    del section["region_name"]
    conf = CONF.format(section="\n".join(f"{key} = {text}" for key, text in section.items()))
    kept = cloud.layout.folder("moorage") / "moorage.conf"
    before = kept.read_text()
    with reference(folder / "reference", database, conf) as behind:
        status, told = admin(cloud, "export", "--to", behind.url, "--keystone")
        assert status == 0, told
        settings = {
            "auth": "keystone",
            "port": str(cloud.layout.ports["moorage"]),
            "database": f"sqlite:///{folder}/shadow.db",
            "shadow": behind.url,
            "shadow_source": database,
            "shadow_refresh": "1h",
            "nova_sync": "5s",
            "shadow_report": str(folder / "shadow.json"),
        }
        try:
            cloud.program("moorage").stop()
            nova = account(cloud.layout, "moorage")
            write(kept, {"DEFAULT": settings, "keystone_authtoken": section, "nova": nova})
            cloud.start("moorage")
            report = folder / "shadow.json"
            eventually(lambda: report.exists() and bool(read(report)["refreshes"]), "it follows")
            yield report
        finally:
            cloud.program("moorage").stop()
            kept.write_text(before)
            cloud.start("moorage")


def told(cloud: Cloud, *words: str) -> tuple[int, Any]:
    """Status and JSON of a command of an operator who has written no settings."""
    done = subprocess.run(
        [ours("moorage"), *words, "-f", "json"],
        env=cloud.layout.environ,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)


def read(report: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(report.read_text())
    return found


def test_the_guide_to_the_switch_over(
    cloud: Cloud, operator: Operator, demo: Tenant, tmp_path: Path
) -> None:
    """From the reference to Moorage, with a server that lives through it."""
    kept = cloud.layout.folder("moorage") / "moorage.conf"
    with shadowed(cloud, tmp_path):
        [server] = demo.boot("m1.small")
        demo.built(server)
        converted, ledger = tmp_path / "converted.conf", f"sqlite:///{tmp_path}/ledger.db"
        words = [str(tmp_path / "reference" / "placement.conf"), "-o", str(converted)]
        assert told(cloud, "config", "convert", *words, "--database", ledger)[0] == 0
        source = ("--from", f"sqlite:///{tmp_path}/placement.db")
        settings = ("--config-file", str(converted))
        # Stopped as the writers are: nothing is written after the last import.
        cloud.program("moorage").stop()
        assert told(cloud, "admin", "import", "placement", *source, "--mirror", *settings)[0] == 0
        status, checked = told(cloud, "admin", "upgrade", "check", *source, *settings)
        assert status == 0, checked
        text = converted.read_text()
        port = cloud.layout.ports["moorage"]
        kept.write_text(text.replace("[DEFAULT]", f"[DEFAULT]\nport = {port}", 1))
        cloud.start("moorage")
        allocated = operator.allocations(server)
        assert list(allocated) == [operator.host(server)]
        moves.live_migrate(operator, demo, server)
        [another] = demo.boot("m1.small")
        demo.built(another)
        for one in (server, another):
            demo.nova.delete_server(one)
        eventually(lambda: not any(operator.usages().values()), "all is deleted", 180)


def test_nova_works_through_a_shadow(
    cloud: Cloud, operator: Operator, demo: Tenant, tmp_path: Path
) -> None:
    with shadowed(cloud, tmp_path) as report:
        [first] = demo.boot("m1.small")
        several = demo.boot("m1.small", min_count=3, max_count=3)
        demo.built(first, *several)
        eventually(lambda: bool(read(report)["joint"]["judged"]), "the three are decided jointly")
        joint = read(report)["joint"]
        moves.live_migrate(operator, demo, first)
        moves.resize_and_revert(operator, demo, first)
        moves.shelve(operator, demo, first)
        for server in (first, *several):
            demo.nova.delete_server(server)
        eventually(lambda: not any(operator.usages().values()), "all is deleted", 180)
        eventually(lambda: read(report)["boots"]["seen"] >= 4, "the boots are seen")
        assert (joint["judged"], joint["broken"]["count"]) == (1, 0), joint
        cases = joint["elsewhere"]["examples"]
        assert joint["same"] == 1 or [one["servers"] for one in cases] == [3], joint
        found = read(report)
        assert found["different"] == {}, found["different"]
        assert found["boots"]["possible_here"] == found["boots"]["seen"]
        assert found["requests"] > 50
