"""The changelog has the package's release, and fragments become the next one above it."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
NEXT = "99.0.0"


def test_the_changelog_begins_with_the_packages_release() -> None:
    version = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    releases = re.findall(
        r"(?m)^## (\S+) \(\d{4}-\d\d-\d\d\)$", (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    )
    assert releases[0] == version


def test_fragments_become_the_next_release(tmp_path: Path) -> None:
    for name in ("pyproject.toml", "CHANGELOG.md"):
        shutil.copy(ROOT / name, tmp_path)
    (tmp_path / "changelog.d").mkdir()
    shutil.copy(ROOT / "changelog.d" / "README.md", tmp_path / "changelog.d")
    (tmp_path / "changelog.d" / "+berth.added.md").write_text("Berths may be dredged.\n")
    command = [sys.executable, "-m", "towncrier", "build", "--version", NEXT, "--keep"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    text = (tmp_path / "CHANGELOG.md").read_text(encoding="utf-8")
    before, _, after = text.partition(f"## {NEXT} (")
    assert before.startswith("# Changelog\n"), before
    assert "- Berths may be dredged." in after.partition("\n## ")[0]
    assert "\n## 0.1.0 (2026-11-23)\n" in after
