"""Where the rules of the house look: the tracked Python files and the package's modules."""

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="session")
def root() -> Path:
    return ROOT


@pytest.fixture(scope="session")
def package(root: Path) -> Path:
    return root / "src" / "moorage"


@pytest.fixture(scope="session")
def tracked(root: Path) -> list[Path]:
    """Every file of the repository: tracked, or new and not ignored."""
    listing = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=root,
        check=True,
        capture_output=True,
    )
    names = listing.stdout.decode().split("\0")
    return [root / name for name in names if name and (root / name).is_file()]
