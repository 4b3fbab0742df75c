"""The application of a shadow: the Placement API is the followed service's own, byte by byte."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING

from moorage import logs
from moorage.http import access_log
from moorage.http.response import error_answer, global_request_id, new_request_id
from moorage.http.wsgi import status_line
from moorage.shadow.exchange import KEPT, WRITES, Exchange, Reply
from moorage.shadow.follower import Follower
from moorage.shadow.replay import Replay
from moorage.shadow.report import ReportFile
from moorage.shadow.upstream import NoReply, Upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from moorage.domain.content import Content
    from moorage.http.kernel import RequestLimits
    from moorage.http.wsgi import Answer, Application, Environ, StartResponse
    from moorage.shadow.config import ShadowConfig
    from moorage.usecases.ports import Store

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Forwarding:
    """Forwards what is below a path, and has it compared; everything else is the service's own."""

    app: Application
    prefix: str
    """Where the Placement API is; empty for the root."""
    upstream: Upstream
    follower: Follower
    longest: int
    """Bytes of a request's body."""
    lasting: logs.Lasting

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Serve one request."""
        path = environ.get("SCRIPT_NAME", "") + environ.get("PATH_INFO", "")
        inner = path[len(self.prefix) :]
        if not path.startswith(self.prefix) or inner[:1] not in {"", "/"} or _is_systems(path):
            return self.app(environ, start_response)
        started = time.perf_counter()
        own_id = new_request_id()
        logs.CURRENT.set(logs.Ids(own_id, global_request_id(environ) or ""))
        try:
            answer = self._forward(environ, inner, own_id)
            access_log.write(environ, path, answer.status, time.perf_counter() - started)
        finally:
            logs.CURRENT.set(logs.NONE)
        headers = list(answer.headers)
        if answer.body and not answer.header("content-length"):  # it came in chunks
            headers.append(("Content-Length", str(len(answer.body))))
        start_response(f"{answer.status} {answer.reason}", headers)
        return [answer.body]

    def _forward(self, environ: Environ, inner: str, own_id: str) -> Reply:
        """The followed service's answer, or what is said without one."""
        body = _body(environ, self.longest)
        if body is None:
            detail = f"The body is incomplete, or longer than {self.longest} bytes."
            return _reply(
                error_answer(
                    HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "http.body_too_large", detail, own_id
                )
            )
        writes = environ["REQUEST_METHOD"] in WRITES
        begun = self.follower.traffic.begin(writes=writes)
        reply = None
        try:
            reply = self.upstream.send(environ, inner, body)
        except NoReply as error:
            self.follower.miss("no answer there", wrote=writes)  # it may be written or not
            if self.lasting.is_news("upstream", error.message):
                _log.error("shadow: %s", error.message)
            detail = "The Placement service behind this one does not answer."
            return _reply(error_answer(HTTPStatus.BAD_GATEWAY, "shadow.no_answer", detail, own_id))
        finally:
            self.follower.traffic.end(
                begun, writes=writes, tell=partial(self._note, environ, inner, body, reply)
            )
        return reply

    def _note(
        self,
        environ: Environ,
        inner: str,
        body: bytes,
        reply: Reply | None,
        overlapped: bool,  # noqa: FBT001 - as it is told
        number: int,
    ) -> None:
        """Have the exchange compared, without the caller's token."""
        if reply is None:
            return
        exchange = Exchange(
            method=environ["REQUEST_METHOD"],
            path=inner,
            query=environ.get("QUERY_STRING", ""),
            body=body,
            reply=reply,
            headers={name: environ[name] for name in KEPT if environ.get(name)},
            overlapped=overlapped,
            number=number,
        )
        self.follower.note(exchange)


def forwarding(
    app: Application,
    config: ShadowConfig,
    bounds: RequestLimits,
    *,
    store: Store,
    own: Application,
    read: Callable[[str], Content],
) -> Forwarding:
    """The application whose Placement API is another service's.

    Its follower is started; `own` is the Placement API over the ledger, and `read` reads the
    content of another one's database.
    """
    file = ReportFile(config.report)
    follower = Follower(
        store=store,
        replay=Replay(own),
        source=partial(read, config.source) if config.source else None,
        refresh_seconds=config.refresh_seconds,
        file=file,
        report=file.resumed(config.followed),
    )
    follower.start()
    upstream = Upstream(config.followed, bounds.seconds)
    return Forwarding(app, config.prefix, upstream, follower, bounds.body, logs.Lasting())


def _is_systems(path: str) -> bool:
    """Whether the path is of the service itself, also where Placement is mounted at the root."""
    return path in {"/healthz", "/readyz", "/metrics"}


def _body(environ: Environ, longest: int) -> bytes | None:
    """The whole body; None if it did not come, or is too long."""
    text = environ.get("CONTENT_LENGTH") or ""
    if not text and "HTTP_TRANSFER_ENCODING" not in environ:
        return b""
    length = int(text) if text.isascii() and text.isdigit() else longest + 1
    if text and length > longest:
        return None
    try:
        body: bytes = environ["wsgi.input"].read(length)
    except OSError:
        return None
    if len(body) > longest or (text and len(body) < length):
        return None
    return body


def _reply(answer: Answer) -> Reply:
    status = answer.status
    reason = status_line(status).partition(" ")[2]
    return Reply(int(status), reason, tuple(answer.headers), answer.body)
