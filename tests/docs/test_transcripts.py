"""Runs the transcripts of pages and README, by the rules of `docs/guide/writing-docs.md`."""

import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
LONG = frozenset(
    {
        *("access", "across-projects", "agent", "alternatives", "audit", "blazar", "capacity"),
        *("devices", "edge-site", "fleet-files", "groups-of-groups", "growth", "heat"),
        *("lease-actions", "leases", "migrate", "nova-leases", "nova-sync", "offers"),
        *("openstack-client", "priorities", "quotas", "series", "server-groups", "shadow"),
        *("slices", "subscriptions", "templates", "volumes-and-ports", "waitlist"),
    }
)
"""Guides that take longest: run by `make nightly` only. test_typed_commands reads them all."""
COMMAND_SECONDS = 150.0
EXEC_SECONDS = 5.0
"""How long a process may take to become another program."""
MARK = "MOORAGE_TRANSCRIPT"
"""Environment variable by which a page's processes are found again, however detached."""

FENCE = re.compile(r"^(?P<indent> *)(?P<ticks>`{3,})(?P<info>[^\n`]*)$")
TITLE = re.compile(r'title="(?P<name>[^"]+)"')


@dataclass
class Step:
    """One command, and what it must print."""

    line: int
    command: str
    expected: list[str] = field(default_factory=list)


@dataclass
class Page:
    """What a page asks to be written and run, in its order."""

    files: dict[str, str] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def fences(text: str) -> Iterator[tuple[int, str, list[str]]]:
    """Yield line number, info string and lines of every outermost fenced block."""
    lines = iter(enumerate(text.splitlines(), start=1))
    for number, line in lines:
        opening = FENCE.match(line)
        if opening is None:
            continue
        indent, ticks = len(opening["indent"]), opening["ticks"]
        body: list[str] = []
        for _, inner in lines:
            if inner.strip() == ticks:
                break
            body.append(inner[indent:] if inner[:indent].isspace() else inner)
        yield number, opening["info"].strip(), body


def read(text: str) -> Page:
    page = Page()
    for number, info, body in fences(text):
        words = info.split()
        if title := TITLE.search(info):
            page.files[title["name"]] = "\n".join(body) + "\n"
        if words[:2] != ["console", "exec"]:
            continue
        for line, content in enumerate(body, start=number + 1):
            if content.startswith("$ "):
                page.steps.append(Step(line, content[2:]))
            elif not page.steps or page.steps[-1].line <= number:
                raise ValueError(f"line {line}: output before any command")
            elif content.startswith("> ") and not page.steps[-1].expected:
                page.steps[-1].command += "\n" + content[2:]
            else:
                page.steps[-1].expected.append(content)
    return page


def matches(expected: list[str], actual: list[str]) -> bool:
    """Whether the output is what the page shows; `…` is any text, alone on a line any lines."""
    parts = []
    for line in expected:
        if line.strip() == "…":
            parts.append(r"(?:[^\n]*\n)*?")
        else:
            pieces = (re.escape(piece) for piece in line.rstrip().split("…"))
            parts.append(r"[^\n]*?".join(pieces) + r"[ \t]*\n")
    return re.fullmatch("".join(parts), "".join(f"{line}\n" for line in actual)) is not None


class Shell:
    """One bash for a page, so that variables and directories carry over."""

    def __init__(self, directory: Path, environment: dict[str, str]) -> None:
        self._end = f"end-{uuid.uuid4()}"
        self._process = subprocess.Popen(
            ["bash", "--noprofile", "--norc"],
            cwd=directory,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )

    def run(self, command: str) -> tuple[int, list[str]]:
        """Run one command; return its status and the lines it printed."""
        assert self._process.stdin is not None
        script = f"{{ {command}\n}} </dev/null\nprintf '\\n%s %s\\n' {self._end} $?\n"
        self._process.stdin.write(script.encode())
        self._process.stdin.flush()
        output = self._until_end()
        text, _, status = output.rpartition(f"\n{self._end} ")
        return int(status), text.removesuffix("\n").split("\n") if text else []

    def _until_end(self) -> str:
        assert self._process.stdout is not None
        seen = b""
        stop = time.monotonic() + COMMAND_SECONDS
        done = re.compile(rf"\n{self._end} \d+\n".encode())
        while not done.search(seen):
            left = stop - time.monotonic()
            ready, _, _ = select.select([self._process.stdout], [], [], max(left, 0.0))
            chunk = os.read(self._process.stdout.fileno(), 65536) if ready else b""
            if not chunk:
                why = "took too long" if not ready else "ended the shell"
                raise AssertionError(f"the command {why}; so far: {seen.decode()}")
            seen += chunk
        return seen.decode().rstrip("\n")

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()


def marked_processes(mark: str) -> list[int]:
    """Every live process whose environment carries the mark, as Linux tells it.

    A process that is just becoming another program shows no environment for a moment; it is
    looked at again until it does.
    """
    sign = f"{MARK}={mark}".encode()
    entries = list(Path("/proc").glob("[0-9]*"))
    found: list[int] = []
    stop = time.monotonic() + EXEC_SECONDS
    while entries and time.monotonic() < stop:
        shown = {entry: environment_of(entry) for entry in entries}
        found += [int(one.name) for one, names in shown.items() if sign in names.split(b"\0")]
        entries = [entry for entry, names in shown.items() if not names]
        time.sleep(0.01 if entries else 0)
    return found


def environment_of(entry: Path) -> bytes:
    """What the process has in its environment; a zero byte if it ended, or is not ours."""
    try:
        names = (entry / "environ").read_bytes()
        (entry / "exe").readlink()  # the kernel's own have none, nor has one that has ended
    except OSError:
        return b"\0"
    return names


@contextmanager
def shell_in(directory: Path) -> Iterator[Shell]:
    """A shell whose leftovers are ended, and are a failure."""
    mark = uuid.uuid4().hex
    home = directory / ".home"
    home.mkdir()
    shutil.copytree(ROOT / "examples", directory, dirs_exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OS_", "MOORAGE_"))}
    environment = kept | {
        MARK: mark,
        "HOME": str(home),
        "XDG_RUNTIME_DIR": str(home),
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "120",
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "TZ": "UTC",
    }
    shell = Shell(directory, environment)
    try:
        yield shell
    finally:
        shell.close()
        left = marked_processes(mark)
        for process in left:
            with suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
    assert not left, f"the page left {len(left)} processes running"


@pytest.mark.slow
@pytest.mark.process
@pytest.mark.parametrize(
    "path",
    [
        pytest.param(
            path,
            id=str(path.relative_to(ROOT)).removesuffix(".md"),
            marks=[pytest.mark.nightly] if path.stem in LONG else [],
        )
        for path in PAGES
    ],
)
@pytest.mark.timeout(600)
def test_transcripts_show_what_happens(path: Path, tmp_path: Path) -> None:
    page = read(path.read_text(encoding="utf-8"))
    if not page.steps:
        return
    with shell_in(tmp_path) as shell:
        for name, content in page.files.items():
            (tmp_path / name).write_text(content, encoding="utf-8")
        for step in page.steps:
            status, actual = shell.run(step.command)
            where = f"{path.relative_to(ROOT)}:{step.line}: $ {step.command}"
            assert matches(step.expected, actual), "\n".join(
                [where, "--- the page shows", *step.expected, "--- it printed", *actual]
            )
            assert status == 0, f"{where}\nfailed with {status}"


def test_a_page_is_read_in_order() -> None:
    page = read(
        'text\n\n```yaml title="a.yaml"\nx: 1\n```\n'
        "\n````markdown\n```console exec\n$ not this\n```\n````\n"
        "\n```console exec\n$ one \\\n> two\nout …\n$ three\n```\n\n```console\n$ not run\n```\n"
    )
    assert page.files == {"a.yaml": "x: 1\n"}
    assert [(step.command, step.expected) for step in page.steps] == [
        ("one \\\ntwo", ["out …"]),
        ("three", []),
    ]


def test_output_without_a_command_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="line 2"):
        read("```console exec\nwhat\n```\n")


@pytest.mark.parametrize(
    ("expected", "actual", "same"),
    [
        ([], [], True),
        (["id b1d7…  held"], ["id b1d7-2aa0  held"], True),
        (["id …"], ["di 7"], False),
        (["a", "…", "z"], ["a", "b", "c", "z"], True),
        (["a", "…", "z"], ["a", "z"], True),
        (["a", "…", "z"], ["a", "b"], False),
        (["a.c"], ["abc"], False),
        (["a"], ["a  "], True),
        (["a"], ["a", "b"], False),
        ([], ["noise"], False),
    ],
)
def test_an_ellipsis_stands_for_any_text(
    expected: list[str], actual: list[str], *, same: bool
) -> None:
    assert matches(expected, actual) is same


def test_the_shell_keeps_state_and_reports_status(tmp_path: Path) -> None:
    with shell_in(tmp_path) as shell:
        assert shell.run("export X=1 # a comment") == (0, [])
        assert shell.run("echo $X; echo oops >&2") == (0, ["1", "oops"])
        assert shell.run("printf 'no newline'") == (0, ["no newline"])
        assert shell.run("cat; false") == (1, [])


def test_a_page_cannot_change_the_examples(tmp_path: Path) -> None:
    kept = (ROOT / "examples" / "racks.yaml").read_bytes()
    with shell_in(tmp_path) as shell:
        assert shell.run("test -s racks.yaml && echo overwritten > racks.yaml") == (0, [])
    assert (ROOT / "examples" / "racks.yaml").read_bytes() == kept


def test_leftovers_are_found_and_ended(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="left 1 processes"), shell_in(tmp_path) as shell:
        shell.run("setsid sleep 300 >/dev/null 2>&1 &")
