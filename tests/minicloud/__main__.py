"""Start or stop the cloud: `python -m tests.minicloud start|stop|status|restart SERVICE`."""

import sys
import time

from tests.minicloud.cloud import BACKENDS, Cloud, say, start
from tests.minicloud.layout import HOME, Layout
from tests.minicloud.programs import NotUp


def main() -> int:
    verbs = {"start": up, "stop": down, "status": status}
    words = sys.argv[1:]
    if len(words) == 2 and words[0] == "restart":
        return restart(words[1])
    if len(words) != 1 or words[0] not in verbs:
        sys.stderr.write(f"{__doc__}\n")
        return 2
    return verbs[words[0]]()


def up() -> int:
    """Start a new one, and leave nothing behind if that fails."""
    began = time.monotonic()
    try:
        layout = Layout.made()
    except FileExistsError:
        say(f"one is there already, in {HOME}: make minicloud-stop ends it")
        return 1
    try:
        start(layout, say)
    except BaseException as error:
        say(f"not started: {error}")
        Cloud(layout).stop()
        if not isinstance(error, NotUp):
            raise
        return 1
    say(f"ready after {time.monotonic() - began:.0f} s")
    say(f"export OS_CLIENT_CONFIG_FILE={HOME}/clouds.yaml OS_CLOUD=demo   # or admin, neighbour")
    return 0


def down() -> int:
    layout = Layout.found()
    if layout is None:
        say("none is running")
        return 0
    Cloud(layout).stop()
    say("stopped")
    return 0


def restart(name: str) -> int:
    """End one service and start it again, with the code as it is now."""
    layout = Layout.found()
    if layout is None or name not in Cloud(layout).names or name in BACKENDS:
        say(f"no such service runs: {name}")
        return 1
    Cloud(layout).program(name).stop()
    Cloud(layout).start(name)
    return 0


def status() -> int:
    """Each program and its pid; 1 if one is not running."""
    layout = Layout.found()
    if layout is None:
        say("none is running")
        return 1
    cloud = Cloud(layout)
    pids = {name: cloud.program(name).pid for name in reversed(cloud.names)}
    for name, pid in pids.items():
        say(f"{name:<13} {pid or 'not running'}")
    return 0 if all(pids.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
