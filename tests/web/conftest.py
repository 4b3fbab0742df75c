"""A browser without a screen: it keeps cookies and says where its requests come from."""

import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from tests.http.conftest import Client, Reply

from moorage.app import create_app
from moorage.settings import configure, read
from moorage.testing.ledger_copy import private_ledger
from moorage.tokens import listing, secret
from moorage.tokens.listing import Token

HOST = "moorage.example"


@dataclass
class Browser:
    """Sends requests as the page does; `headers` of a request are written with `_`."""

    client: Client
    cookies: dict[str, str] = field(default_factory=dict)
    site: str | None = "same-origin"
    """What it says of who asks; None: an old browser, which says nothing."""
    session: str | None = None
    """The session that this tab means."""
    set_cookies: list[str] = field(default_factory=list)
    environ: dict[str, Any] = field(default_factory=dict)

    def __call__(self, method: str, path: str, body: object = None, **headers: str) -> Reply:
        data = b"" if body is None else json.dumps(body).encode()
        environ: dict[str, Any] = {"HTTP_HOST": HOST, **self.environ}
        if self.site is not None:
            environ["HTTP_SEC_FETCH_SITE"] = self.site
        if self.cookies:
            environ["HTTP_COOKIE"] = "; ".join(f"{k}={v}" for k, v in self.cookies.items())
        if data:
            environ["CONTENT_TYPE"] = "application/json"
        if self.session is not None and not path.startswith("/ui"):
            environ["HTTP_X_MOORAGE_SESSION"] = self.session
        environ |= {f"HTTP_{name.upper()}": value for name, value in headers.items()}
        reply = self.client(method, path, token=None, body=data, environ=environ)
        if (sent := reply.headers.get("set-cookie")) is not None:
            self.set_cookies.append(sent)
            name, _, value = sent.partition(";")[0].partition("=")
            self.cookies[name] = value
            if "Max-Age=0" in sent:
                del self.cookies[name]
        return reply

    def login(self, **body: Any) -> Any:
        """Log in; this tab then means the new session, which is returned."""
        answer = self("POST", "/ui/session", body)
        assert answer.status == 200, answer.body
        session = answer.json["session"]
        self.session = session["id"]
        return session

    def tab(self) -> "Browser":
        """Another tab: the same cookies, which it learns a session from."""
        other = Browser(self.client, self.cookies, self.site)
        session = other("GET", "/ui/session").json["session"]
        other.session = session["id"] if session else None
        return other


MakeBrowser = Callable[..., Browser]


@pytest.fixture
def browser() -> Iterator[MakeBrowser]:
    """Make a browser before a service of its own settings: `browser(auth="token-file", …)`."""
    ledger = private_ledger()

    def make(**given: Any) -> Browser:
        return Browser(Client(create_app(configure(read(given, {}, ())), store=ledger)))

    yield make
    ledger.close()


@pytest.fixture
def token_file(tmp_path: Path) -> tuple[str, dict[str, str]]:
    """A file with a token each of an operator, a member and a reader; its path, and the tokens."""
    path, tokens = tmp_path / "tokens.yaml", {}
    for role in ("admin", "member", "reader"):
        tokens[role] = secret.new_token(role)
        hashed = secret.hashed(tokens[role])
        listing.add(path, Token(role, hashed, f"{role}-user", "shop", (role,), None))
    return str(path), tokens


def code_of(reply: Reply) -> tuple[int, str]:
    """Status and code of a refusal."""
    return reply.status, reply.json["errors"][0]["code"]


def unpacked(reply: Reply) -> bytes:
    return gzip.decompress(reply.body)
