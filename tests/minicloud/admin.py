"""`moorage admin ...` as the cloud's operator runs it: beside the service, on its database."""

import json
import os
import subprocess
from typing import Any

from tests.minicloud.cloud import Cloud
from tests.minicloud.layout import ours


def admin(cloud: Cloud, *words: str) -> tuple[int, Any]:
    """Status and JSON of a command, with the service's settings."""
    home = cloud.layout.home
    done = subprocess.run(
        [ours("moorage"), "admin", *words, "-f", "json"],
        env={
            **os.environ,
            "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml"),
            "OS_CLOUD": "admin",
            "MOORAGE_CONFIG_FILE": str(home / "moorage" / "moorage.conf"),
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.stdout, done.stderr
    return done.returncode, json.loads(done.stdout)
