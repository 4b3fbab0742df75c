"""The libraries of the page lie there as they were locked."""

import hashlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
VENDOR = ROOT / "src/moorage/web/vendor"
PARTS = {".js", ".css", ".html", ".svg"}


def locked() -> dict[str, str]:
    """File -> SHA-256, of the lock."""
    lines = (ROOT / "requirements/web.lock").read_text(encoding="utf-8").splitlines()
    return {
        file: digest for _, _, file, digest in (line.split() for line in lines if line[0] != "#")
    }


def test_each_library_is_the_one_that_was_locked() -> None:
    found = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in VENDOR.iterdir()}
    assert found == locked()


def test_the_lock_has_every_library_that_is_asked_for() -> None:
    asked = (ROOT / "requirements/web.in").read_text(encoding="utf-8").split()
    have = {
        f"{name}@{version}"
        for name, version, *_ in (
            line.split()
            for line in (ROOT / "requirements/web.lock").read_text(encoding="utf-8").splitlines()
            if line[0] != "#"
        )
    }
    for one in asked:
        assert any(version == one or version.startswith(f"{one}.") for version in have), one


def test_the_page_takes_nothing_from_elsewhere() -> None:
    files = (ROOT / "src/moorage/web").rglob("*.*")
    own = [one for one in files if one.suffix in PARTS and one.parent != VENDOR]
    assert own
    for file in own:
        text = file.read_text(encoding="utf-8").replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text, file
        assert "https://" not in text, file
