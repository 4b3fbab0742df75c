"""Plays a story against the application, and records its exchanges in normal form."""

import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final, TypeAlias
from urllib.parse import unquote_to_bytes, urlsplit

from tests.corpus.story import BadStory, Step, Story
from tests.corpus.world import opened

from moorage.http.wsgi import Application

Exchange: TypeAlias = dict[str, Any]
"""`ask`, `as`, `version`, `status`, `headers` and `body`, or `text` where the body is not JSON in
one of the forms of `FORMS`; `form` names another form than the first."""

_LEFT_OUT: Final = {"content-length", "x-openstack-request-id", "date", "server"}
_ID: Final = r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_REQUEST: Final = re.compile(f"req-{_ID}")
_UUID: Final = re.compile(
    r"(?<![0-9a-f])([0-9a-f]{8})([-_]?)([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{4})\2([0-9a-f]{12})"
    r"(?![0-9a-f])",
    re.IGNORECASE,
)
"""An id, also within a name: `CUSTOM_RESERVATION_C0DE0000_0000_4000_8000_000000000006`."""
_MEASURED: Final = re.compile(r'("(?:wall_ms|elapsed_ms)": ?)[0-9.e-]+')
_RELEASE: Final = re.compile(r'("release": ?)"[^"]*"')
FORMS: Final[Mapping[str, Mapping[str, Any]]] = {
    "compact": {"separators": (",", ":"), "ensure_ascii": False},
    "spaced": {"ensure_ascii": False},
    "spaced ascii": {},
}
"""How bodies are written as text, by name."""


@dataclass
class Names:
    """Ids that the service made, by their order of appearance."""

    given: set[str]
    """Ids of the story and of its fleet, which stay as they are."""
    _made: dict[str, int] = field(default_factory=dict)

    def sent(self, text: str) -> None:
        """Take what a request names for its own, unless the service made it."""
        self.given.update(ids_of(text) - self._made.keys())

    def normal(self, text: str) -> str:
        """The text without what is another one at each run."""
        text = _REQUEST.sub("<request>", text)
        text = _MEASURED.sub(r'\g<1>"<measured>"', text)
        text = _RELEASE.sub(r'\g<1>"<release>"', text)
        return _UUID.sub(self._name, text)

    def _name(self, match: re.Match[str]) -> str:
        found = _plain(match)
        if found in self.given:
            return match[0]
        number = self._made.setdefault(found, len(self._made) + 1)
        between = " " if match[2] == "-" else match[2]
        name = f"<id{between}{number}>"
        return name.upper() if match[0].isupper() else name


def ids_of(text: str) -> set[str]:
    """The ids that occur in a text, however they are written."""
    return {_plain(one) for one in _UUID.finditer(text)}


def _plain(match: re.Match[str]) -> str:
    """An id as the service writes it by itself."""
    return "-".join((match[1], *match.groups()[2:])).lower()


def play(story: Story, first_id: int = 1) -> list[Exchange]:
    """The exchanges of a story; ids that the service makes count from `first_id`.

    Raises:
        BadStory: a step keeps what its answer does not have.
    """
    with opened(story.fleet, story.settings, first_id, judges=story.judges) as world:
        names = Names(ids_of(story.source) | world.fleet_ids)
        kept: dict[str, str] = {}
        found = []
        for step in story.steps:
            filled = step.filled(kept)
            names.sent(f"{filled.path} {filled.text}")
            answer = _send(world.app, filled)
            found.append(_recorded(step, answer, names))
            for name, where in step.keep.items():
                kept[name] = _value(story, step, answer, where)
        return found


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int
    headers: Mapping[str, str]
    body: bytes


def _send(app: Application, step: Step) -> _Answer:
    data = (step.text or "").encode()
    path, _, query = step.path.partition("?")
    environ: dict[str, Any] = {
        "REQUEST_METHOD": step.method,
        "SCRIPT_NAME": "",
        "PATH_INFO": unquote_to_bytes(path).decode("latin-1"),
        "QUERY_STRING": query,
        "SERVER_NAME": "moorage.example",
        "SERVER_PORT": "80",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "HTTP_HOST": "moorage.example",
        "REMOTE_ADDR": "192.0.2.1",
        "wsgi.version": (1, 0),
        "wsgi.url_scheme": "http",
        "wsgi.input": io.BytesIO(data),
        "wsgi.errors": io.StringIO(),
        "wsgi.multithread": False,
        "wsgi.multiprocess": False,
        "wsgi.run_once": False,
    }
    if step.text is not None:
        environ["CONTENT_LENGTH"] = str(len(data))
    for name, value in step.sent_headers.items():
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        environ[key] = value
    started: list[tuple[str, list[tuple[str, str]]]] = []

    def start(status: str, headers: list[tuple[str, str]], *_: object) -> Any:
        started.append((status, headers))

    chunks = app(environ, start)
    try:
        body = b"".join(chunks)
    finally:
        getattr(chunks, "close", lambda: None)()
    status, headers = started[-1]
    return _Answer(int(status[:3]), {name.lower(): value for name, value in headers}, body)


def _recorded(step: Step, answer: _Answer, names: Names) -> Exchange:
    headers = {name: value for name, value in answer.headers.items() if name not in _LEFT_OUT}
    if "last-modified" in headers:
        headers["last-modified"] = "<time>"
    found: Exchange = {"ask": f"{step.method} {step.path}", "as": step.caller}
    if step.version is not None:
        found["version"] = step.version
    found["status"] = answer.status
    found["headers"] = {name: names.normal(headers[name]) for name in sorted(headers)}
    if step.unread:
        return found
    return found | _body(names.normal(answer.body.decode()))


def _body(text: str) -> Exchange:
    """The body, so that its text can be made again from it."""
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:
        return {"text": text}
    for form, how in FORMS.items():
        if json.dumps(value, **how) == text:
            return {"body": value} if form == "compact" else {"form": form, "body": value}
    return {"text": text}


def _value(story: Story, step: Step, answer: _Answer, where: str) -> str:
    if where.startswith("header "):
        return urlsplit(answer.headers[where.removeprefix("header ")]).path
    try:
        value = json.loads(answer.body)
        for part in where.split("."):
            value = value[int(part) if isinstance(value, list) else part]
    except (ValueError, LookupError, TypeError):
        said = f"{answer.status} {HTTPStatus(answer.status).phrase}: {answer.body[:1500].decode()}"
        asked = f"{step.method} {step.path}"
        raise BadStory(f"{story.name}: {asked} has no {where} in its answer: {said}") from None
    return str(value)
