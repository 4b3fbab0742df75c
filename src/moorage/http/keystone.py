"""Authentication by Keystone, through keystonemiddleware's `auth_token`.

`auth_token` is a WSGI middleware; here it stands in front of an application that only says that
the request came through, so that it decides and the kernel answers. Who the caller is comes from
the headers it sets, after it has dropped whatever the client sent under those names. What it finds
is remembered for `token_cache_time` (five minutes unless said): its own way costs about half a
millisecond of processor time for each request, and its memory has no bound.
"""

from __future__ import annotations

import logging
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

from keystoneauth1 import exceptions as keystone_errors
from keystoneauth1 import loading
from keystonemiddleware import auth_token
from oslo_config import cfg

from moorage.domain.errors import Busy, InvalidDescription, MoorageError
from moorage.domain.period import SECOND, parse_instant
from moorage.http.config import IdentityAddress
from moorage.http.response import GLOBAL_REQUEST_ID
from moorage.http.token_file import TokenCache
from moorage.usecases.ports import Caller

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from moorage.http.wsgi import Environ, ExcInfo, Headers, StartResponse

_log = logging.getLogger(__name__)

SECTION: Final = "keystone_authtoken"

_THROUGH: Final = "moorage.keystone.through"
_NO_CACHE: Final = "moorage.keystone.no_cache"
_RETRY_SECONDS: Final = 5


class Keystone:
    """The strategy; `options` are those of the section `[keystone_authtoken]`, as texts.

    Raises:
        InvalidDescription: an option is unknown, missing or has a value that is none of its.
    """

    def __init__(self, options: Mapping[str, str]) -> None:
        conf = _configured(options)
        own = conf[SECTION]
        self.challenge = f'Keystone uri="{own.www_authenticate_uri or own.auth_url}"'
        self.address = IdentityAddress(
            url=own.auth_url,
            verify=own.cafile or not own.insecure,
            certificate=(own.certfile, own.keyfile) if own.certfile and own.keyfile else None,
        )
        self._shared_cache = bool(own.memcached_servers)
        self._middleware: Any = auth_token.AuthProtocol(_through, {"oslo_config_config": conf})
        self._known: TokenCache[Caller] = TokenCache(seconds=max(own.token_cache_time, 0))

    def __call__(self, environ: Environ, request_id: str) -> Caller | None:
        """The caller, or None without a token that Keystone finds valid.

        Raises:
            Busy: Keystone cannot be asked.
        """
        sent = environ.get("HTTP_X_AUTH_TOKEN")
        if not sent:
            return None
        # A service's token beside the user's may keep an expired one alive: asked each time.
        alone = "HTTP_X_SERVICE_TOKEN" not in environ
        known = self._known.get(sent) if alone else None
        if known is None:
            found = self._ask(environ)
            if found is None:
                return None
            known = _caller(found)
            if alone:
                self._known.put(sent, known, _seconds_left(found))
        return Caller(
            user_id=known.user_id,
            project_id=known.project_id,
            roles=known.roles,
            request_id=request_id,
            global_request_id=environ.get(GLOBAL_REQUEST_ID),
            project_scoped=known.project_scoped,
        )

    def _ask(self, environ: Environ) -> Environ | None:
        """Run the request through `auth_token`; None if it is refused."""
        request = dict(environ)
        if not self._shared_cache:
            request[_NO_CACHE] = _NoCache()
        statuses: list[int] = []

        def start_response(
            status: str, headers: Headers, exc_info: ExcInfo | None = None, /
        ) -> Any:  # noqa: ANN401 - the write callable, which is not used
            del headers, exc_info
            statuses.append(int(status[:3]))

        try:
            self._middleware(request, start_response)
        except keystone_errors.ClientException as error:
            _log.error("request to Keystone failed: %s", type(error).__name__)
            raise _unavailable() from error
        if request.get(_THROUGH):
            return request
        if statuses != [HTTPStatus.UNAUTHORIZED]:
            raise _unavailable()
        return None


def _through(environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
    """The innermost application, which marks the requests that the middleware lets through."""
    environ[_THROUGH] = True
    start_response("204 No Content", [])
    return []


class _NoCache:
    """A cache for `auth_token` that keeps nothing."""

    def get(self, key: str) -> None:
        """Always a miss."""

    def set(self, key: str, value: object, time: int = 0) -> None:
        """Ignore the value."""


def _caller(request: Environ) -> Caller:
    project = request.get("HTTP_X_PROJECT_ID") or ""
    in_system = bool(request.get("HTTP_OPENSTACK_SYSTEM_SCOPE"))
    # From the token itself: X-Roles joins the names with commas, and a name may have one.
    roles = request["keystone.token_info"]["token"].get("roles", ())
    return Caller(
        user_id=request["HTTP_X_USER_ID"],
        project_id=project,
        roles=frozenset(role["name"].lower() for role in roles),
        project_scoped=bool(project) and not in_system,
    )


def _seconds_left(request: Environ) -> float:
    """How long the token itself is valid."""
    expires = parse_instant(request["keystone.token_info"]["token"]["expires_at"])
    return max(expires / SECOND - time.time(), 0)


def _unavailable() -> Busy:
    return Busy("the identity service cannot be asked now", retry_after=_RETRY_SECONDS)


class _Literal(cfg.ConfigOpts):
    """A configuration source whose values are taken literally: a password may hold a `$`."""

    def _substitute(self, value: Any, group: Any = None, namespace: Any = None) -> Any:  # noqa: ANN401, ARG002 - oslo.config's signature
        return value


def _configured(options: Mapping[str, str]) -> Any:  # noqa: ANN401 - oslo.config's class
    """The options as `auth_token` wants them, on a `ConfigOpts` of our own."""
    conf = _Literal()
    conf([], project="moorage", default_config_files=[], default_config_dirs=[])
    for group, some in auth_token.list_opts():
        conf.register_opts(some, group=group)
    known = {
        name: opt for _, some in auth_token.list_opts() for opt in some for name in _names(opt)
    }
    known |= {name: opt for opt in _of_plugin(conf, options) for name in _names(opt)}
    for name, text in options.items():
        opt = known.get(name.replace("-", "_"))
        if opt is None:
            raise _bad(name, "keystonemiddleware has no such option")
        try:
            conf.set_override(opt.dest, text, group=SECTION)
        except (ValueError, cfg.Error):
            raise _bad(name, "this is no value for it") from None  # the value may be a secret
    if not conf[SECTION].get("auth_url"):
        raise _bad("auth_url", "it must say where Keystone is")
    # The kernel keeps open paths open; here every request needs an answer, and an identity
    # service that is down must not look like a wrong token.
    conf.set_override("delay_auth_decision", override=False, group=SECTION)
    conf.set_override("cache", None if conf[SECTION].memcached_servers else _NO_CACHE, SECTION)
    return conf


def _of_plugin(conf: Any, options: Mapping[str, str]) -> list[Any]:  # noqa: ANN401 - oslo.config's class
    """Register and return the options of the service's own auth plug-in."""
    kind = options.get("auth_type") or options.get("auth_plugin")
    if not kind:
        raise _bad("auth_type", "it must say how the service authenticates, such as password")
    try:
        loader: Any = loading.get_plugin_loader(kind)
    except keystone_errors.NoMatchingPlugin:
        raise _bad("auth_type", f"there is no {kind}") from None
    found: list[Any] = loading.get_auth_plugin_conf_options(loader)
    conf.register_opts(found, group=SECTION)
    return found


def _names(opt: Any) -> set[str]:  # noqa: ANN401 - oslo.config's class
    names = {opt.name, opt.dest, *(old.name for old in opt.deprecated_opts)}
    return {name.replace("-", "_") for name in names if name}


def _bad(name: str, problem: str) -> MoorageError:
    return InvalidDescription(f"option {name} of [{SECTION}]: {problem}", path=name)
