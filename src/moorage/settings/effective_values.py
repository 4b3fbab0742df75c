"""The values in force and where each came from, before anything is made of them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote_plus

from moorage.domain.errors import BadConfiguration
from moorage.options import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from moorage.options.kinds import Setting

SECTION: Final = "DEFAULT"
KEYSTONE: Final = "keystone_authtoken"
"""The one section that is not ours: handed to keystonemiddleware as it is."""

_HIDDEN: Final = "***"
_PASSWORD: Final = re.compile(r"(://[^:/]*:)[^@]*@(?:.*@)?", re.DOTALL)
"""As SQLAlchemy finds it in a URL, and what stands behind an `@` that should have been quoted."""
_WITHOUT: Final = re.compile(
    r"""['"]?[\w+.-]+://(?:[^:/?@\s]*@)?"""
    r"""(?:\[[^\]@/]*\]|[^:/?@\s\[]*)(?::\d*)?(?:,[^:/?@\s]*(?::\d*)?)*"""
    r"""(?:/[^?@]*)?(?:\?.*)?['"]?""",
    re.DOTALL,
)
"""A URL that has no password, with or without quotation marks."""
_FILE: Final = re.compile(r"""['"]?sqlite[\w+]*:""")
_MALFORMED: Final = (
    # user:secret@host without a scheme, or behind one with a slash too few or too many
    (re.compile(r"^([^:@]*:)[^@]*@(?:.*@)?", re.DOTALL), rf"\1{_HIDDEN}@"),
    # scheme://user:secret and scheme:/user:secret, whose host was forgotten
    (re.compile(r"^([^:]*:/*[^:@]*:).*", re.DOTALL), rf"\1{_HIDDEN}"),
)
"""Where a secret may stand in what is no URL, and what is shown of it."""
_ARGUMENT: Final = re.compile(r"(?<=[?&#])[^&]*")
_SECRET: Final = re.compile(r"pass|secret|token\b|credential|_key\b", re.IGNORECASE)
_SECRET_ARGUMENT: Final = re.compile(
    r"pass|pwd|secret|token|credential|api_?key|signature|scram_\w+_key", re.IGNORECASE
)
"""Names of libpq's, PyMySQL's and webhooks' arguments; `sslkey` names a file."""


class BadSetting(BadConfiguration):
    """A setting cannot be used. Names the option and where its value came from."""

    def __init__(self, name: str, source: str, problem: str) -> None:
        super().__init__(f"setting {name} ({source}): {problem}", path=name)
        self.name = name
        self.source = source


NOVA: Final = "nova"
"""Credentials for Nova, as other services write them; read where servers are ended through it."""


@dataclass(frozen=True)
class Effective:
    """The values in force, and where each came from."""

    values: Mapping[str, Any]
    """Name -> plain value: text, number, truth or list of texts. Goes through JSON unchanged."""
    sources: Mapping[str, str]
    keystone: Mapping[str, str] = field(default_factory=dict)
    """The section of keystonemiddleware, texts as they stand in the file."""
    nova: Mapping[str, str] = field(default_factory=dict)
    """The section of keystoneauth1 for Nova, texts as they stand in the file."""
    files: Sequence[str] = ()
    """The configuration files that were read, in order."""
    ignored: Sequence[str] = ()
    """A sentence for each option of a file that has no meaning for this service."""

    def lines(self) -> Iterable[str]:
        """What `--show-config` prints: itself a valid configuration file, secrets masked."""
        yield f"[{SECTION}]"
        for setting in SETTINGS:
            value = self.values[setting.name]
            for one in value if setting.multi else [value]:
                shown = masked(setting.show(one)) if setting.secret else setting.show(one)
                yield f"# {self.sources[setting.name]}"
                yield f"{setting.name} = {shown}"
        for name, section in self._sections():
            yield f"[{name}]"
            for key, text in section.items():
                yield f"# {self.sources[f'{name}.{key}']}"
                yield f"{key} = {shown_option(key, text)}"

    def described(self) -> Iterable[Mapping[str, str]]:
        """Name, value, source and default of each setting, as texts, secrets masked."""
        for setting in SETTINGS:
            value = self.values[setting.name]
            texts = [setting.show(one) for one in (value if setting.multi else [value])]
            yield {
                "name": setting.name,
                "value": ",".join(masked(one) if setting.secret else one for one in texts),
                "source": self.sources[setting.name],
                "default": _shown_default(setting),
            }
        for name, section in self._sections():
            for key, text in section.items():
                yield {
                    "name": f"{name}.{key}",
                    "value": shown_option(key, text),
                    "source": self.sources[f"{name}.{key}"],
                    "default": "",
                }

    def _sections(self) -> Iterable[tuple[str, Mapping[str, str]]]:
        """Sections that are not ours, if there is anything in them."""
        sections = {KEYSTONE: self.keystone, NOVA: self.nova}
        return ((name, section) for name, section in sections.items() if section)


def _shown_default(setting: Setting) -> str:
    """In the form in which values are shown; empty where there is none."""
    if setting.multi or not setting.default:
        return setting.written_default
    return setting.show(setting.type(setting.default))


def shown_option(key: str, text: str) -> str:
    """An option of a section passed on, without secrets."""
    return _HIDDEN if _SECRET.search(key) else _masked(text)[0]


def masked(url: str) -> str:
    """A URL without the secrets it may hold: its password, and arguments that are named so.

    The text of a URL that cannot be read is masked too: rather too much of it than too little.
    """
    shown, found = _masked(url)
    if found or _FILE.match(shown) or _WITHOUT.fullmatch(shown):
        return shown
    for pattern, instead in _MALFORMED:
        shown, found = pattern.subn(instead, shown)
        if found:
            break
    return shown


def _masked(text: str) -> tuple[str, int]:
    """A text without secrets of the URLs in it, and whether one of them had a password."""
    return _PASSWORD.subn(rf"\1{_HIDDEN}@", _ARGUMENT.sub(_argument, text))


def _argument(found: re.Match[str]) -> str:
    """An argument of a URL; what is parted by `;` may be several, or one secret."""
    pieces = found.group().split(";")
    for number, piece in enumerate(pieces):
        name, sign, _ = piece.partition("=")
        if sign and _SECRET_ARGUMENT.search(unquote_plus(name)):
            return ";".join([*pieces[:number], f"{name}={_HIDDEN}"])
    return found.group()
