"""The function `make_url`: a URL from its parts, each escaped as it must be."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from moorage.heat import typed_yaml

if TYPE_CHECKING:
    from collections.abc import Mapping

    from moorage.heat.functions.call import Call, Table
    from moorage.heat.yaml_tree import YamlNode

_PARTS: Final = ("scheme", "username", "password", "host", "port", "path", "query", "fragment")
_UNRESERVED: Final = frozenset(
    b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-~"
)
_WITH_HOST: Final = frozenset(
    {"", "http", "https", "ftp", "sftp", "file", "ws", "wss", "git", "nfs"}
)
"""Schemes whose URLs have two slashes even without a host."""
_LARGEST_PORT: Final = 65535


def escaped(text: str, keep: bytes = b"") -> str:
    """The text with percent escapes for all but unreserved characters and those to keep."""
    known = _UNRESERVED | frozenset(keep)
    return "".join(chr(one) if one in known else f"%{one:02X}" for one in text.encode())


def _make_url(call: Call) -> YamlNode:
    parts = call.entries(call.argument)
    for name, node in parts.items():
        if name not in _PARTS:
            raise call.invalid(f"a URL has no {name!r}; it has {', '.join(_PARTS)}", node)
    call.known(call.argument)
    call.spend(call.argument.size * 50)
    scheme, fragment = _text(call, parts, "scheme"), _text(call, parts, "fragment")
    if ":" in scheme:
        raise call.invalid("a scheme has no colon", parts["scheme"])
    server = _user(call, parts) + _host(call, parts) + _port(call, parts)
    url = escaped(_text(call, parts, "path"), b"/")
    if server or (scheme in _WITH_HOST and scheme and not url.startswith("//")):
        url = f"//{server}{'/' if url and not url.startswith('/') else ''}{url}"
    query = _query(call, parts)
    return call.value(
        (f"{scheme}:" if scheme else "")
        + url
        + (f"?{query}" if query else "")
        + (f"#{escaped(fragment, b'/')}" if fragment else "")
    )


def _text(call: Call, parts: Mapping[str, YamlNode], name: str) -> str:
    return call.text(parts[name]) if name in parts else ""


def _user(call: Call, parts: Mapping[str, YamlNode]) -> str:
    user, password = (escaped(_text(call, parts, name)) for name in ("username", "password"))
    if not user and not password:
        return ""
    return f"{user}:{password}@" if password else f"{user}@"


def _host(call: Call, parts: Mapping[str, YamlNode]) -> str:
    host = _text(call, parts, "host")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    host = escaped(host, b":")
    return f"[{host}]" if ":" in host else host


def _port(call: Call, parts: Mapping[str, YamlNode]) -> str:
    node = parts.get("port")
    if node is None:
        return ""
    try:
        number = int(node.plain())  # type: ignore[arg-type] # what is no number raises
    except (ValueError, TypeError) as error:
        raise call.invalid(f"{typed_yaml.kind(node)} is no port", node) from error
    if not 0 < number <= _LARGEST_PORT:
        raise call.invalid(f"a port is between 1 and {_LARGEST_PORT}, not {number}", node)
    return f":{node.value}"


def _query(call: Call, parts: Mapping[str, YamlNode]) -> str:
    if "query" not in parts:
        return ""
    pairs = call.entries(parts["query"]).items()
    return "&".join(f"{_form(key)}={_form(str(node.plain()))}" for key, node in pairs)


def _form(text: str) -> str:
    return escaped(text, b" /").replace(" ", "+")


FUNCTIONS: Final[Table] = MappingProxyType({"make_url": _make_url})
