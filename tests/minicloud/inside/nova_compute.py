"""Runs nova-compute with a driver without hypervisor; run by the cloud's interpreter.

Nova's own fake driver forgets its servers when the process ends. This one remembers them, so that a
compute service can be killed and started again, and a build fails on the hosts that the server's
metadata `minicloud:fail` names (`*`: on all).
"""

import json
import os
import sys
import threading
import types
from pathlib import Path
from typing import Any

from nova import monkey_patch  # type: ignore[import-not-found]

monkey_patch.patch(backend="threading")

from nova import exception  # noqa: E402
from nova.cmd import compute  # type: ignore[import-not-found]  # noqa: E402
from nova.virt import fake  # type: ignore[import-not-found]  # noqa: E402


class Remembered(dict[str, Any]):
    """A host's servers by uuid, written to a file at each change."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        self._writing = threading.Lock()  # Nova builds and deletes several at once
        if path.exists():
            for one in json.loads(path.read_text()):
                super().__setitem__(one["uuid"], fake.FakeInstance(**one))

    def __setitem__(self, key: str, value: Any) -> None:
        super().__setitem__(key, value)
        self.write()

    def __delitem__(self, key: str) -> None:
        super().__delitem__(key)
        self.write()

    def write(self) -> None:
        with self._writing:
            every = list(self.values())
            kept = [{"name": one.name, "state": one.state, "uuid": one.uuid} for one in every]
            new = self._path.with_suffix(".new")
            new.write_text(json.dumps(kept))
            new.rename(self._path)


class MinicloudDriver(fake.FakeDriverWithoutFakeNodes):  # type: ignore[misc]
    """A host of 16 VCPU, 64 GB of memory and 1 TB of disk."""

    vcpus = 16
    memory_mb = 65_536
    local_gb = 1_000
    capabilities = fake.FakeDriver.capabilities | {"supports_migrate_to_same_host": False}

    def init_host(self, host: str) -> None:
        super().init_host(host)
        self.instances = Remembered(Path(fake.CONF.state_path) / "instances.json")

    def spawn(self, context: Any, instance: Any, *arguments: Any, **named: Any) -> None:
        fails_on = instance.metadata.get("minicloud:fail", "").split(",")
        if "*" in fails_on or self._host in fails_on:
            raise exception.NovaException(f"{self._host} fails this build, as its metadata ask")
        super().spawn(context, instance, *arguments, **named)

    def power_off(self, instance: Any, timeout: int = 0, retry_interval: int = 0) -> None:
        super().power_off(instance, timeout, retry_interval)
        self.instances.write()

    def power_on(self, *arguments: Any, **named: Any) -> None:
        super().power_on(*arguments, **named)
        self.instances.write()

    def post_live_migration(self, context: Any, instance: Any, *_: Any, **__: Any) -> None:
        """The guest has left this host."""
        self.destroy(context, instance, network_info=None)


if __name__ == "__main__":
    # Nova loads drivers from below `nova.virt` alone.
    module = types.ModuleType("nova.virt.minicloud")
    module.MinicloudDriver = MinicloudDriver  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module
    os.umask(0o077)
    compute.main()
