"""The repository names no download host: locks, docs and code work behind any mirror."""

import re
from pathlib import Path

# Spelled in pieces, so that this file passes its own test.
HOSTS = [
    ("py" + "pi", "org"),
    ("python" + "hosted", "org"),
    ("npm" + "js", "org"),
    ("npm" + "js", "com"),
    ("yarn" + "pkg", "com"),
    ("crates", "io"),
    ("ruby" + "gems", "org"),
    ("proxy.go" + "lang", "org"),
    ("deb.deb" + "ian", "org"),
    ("conda", "anaconda.org"),
]
NAMES_A_HOST = re.compile(
    "|".join(rf"\b{re.escape(name)}\.{re.escape(top)}\b" for name, top in HOSTS), re.IGNORECASE
)
INDEX_OPTION = re.compile(r"--(?:extra-)?index-" + r"url|--find-" + r"links|--trusted-" + r"host")


def test_no_file_names_a_registry(root: Path, tracked: list[Path]) -> None:
    found = []
    for path in tracked:
        text = path.read_bytes().decode("utf-8", errors="replace")
        for number, line in enumerate(text.splitlines(), start=1):
            if NAMES_A_HOST.search(line):
                found.append(f"{path.relative_to(root)}:{number}")
    assert not found, f"these name a download host: {found}"


def test_locks_are_hashes_and_nothing_else(root: Path) -> None:
    locks = sorted((root / "requirements").glob("*.txt"))
    assert locks
    for lock in locks:
        text = lock.read_text(encoding="utf-8")
        assert not INDEX_OPTION.search(text), f"{lock.name} names an index"
        assert "://" not in text, f"{lock.name} holds an address"
        for requirement in re.split(r"\n(?=\S)", text.strip()):
            assert "--hash=sha256:" in requirement, f"{lock.name}: no hash in {requirement!r}"


def test_the_rule_sees_a_host() -> None:
    assert NAMES_A_HOST.search("https://files.python" + "hosted.org/packages/x.whl")
    assert NAMES_A_HOST.search("PY" + "PI.org")
    assert not NAMES_A_HOST.search("https://docs.openstack.org/placement")
