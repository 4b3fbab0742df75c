"""The processors: which are online, and what they can do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from moorage.agent.facts import Caution, Processors
from moorage.agent.files import numbers, whole_number

if TYPE_CHECKING:
    from moorage.agent.files import Texts

_ONLINE: Final = "sys/devices/system/cpu/online"
_INFO: Final = "proc/cpuinfo"
_THREADS: Final = "sys/devices/system/cpu/smt/active"
PATTERNS: Final = (_ONLINE, _INFO, _THREADS)
MAX_CPU: Final = 65_535
_FLAGS: Final = {"flags": "x86_64", "Features": "aarch64"}
"""How the kernel of an architecture names the line with what a processor can do."""
_PROCESSOR: Final = "processor"


def parse(texts: Texts) -> tuple[Processors, tuple[Caution, ...]]:
    """The processors. What all of them can do counts: a server may run on any.

    Where no list says which are online, they are those that /proc/cpuinfo has.
    """
    cautions: list[Caution] = []
    online = numbers(texts.text(_ONLINE), MAX_CPU)
    if online is None or (not online and _ONLINE in texts.content):
        said = texts.text(_ONLINE)[:40]
        cautions.append(Caution("not-a-number", _ONLINE, f"not a list of processors: {said!r}"))
        online = frozenset()
    listed: set[int] = set()
    architecture = ""
    common: frozenset[str] | None = None
    for line in texts.text(_INFO).splitlines():
        key, colon, value = line.partition(":")
        if key.strip() == _PROCESSOR and (number := whole_number(value, MAX_CPU)) is not None:
            listed.add(number)
        if colon and key.strip() in _FLAGS:
            architecture = _FLAGS[key.strip()]
            flags = frozenset(value.split())
            common = flags if common is None else common & flags
    return (
        Processors(
            online=online or frozenset(listed),
            online_listed=bool(online),
            flags=common or frozenset(),
            architecture=architecture,
            hyperthreading=texts.text(_THREADS) == "1",
        ),
        tuple(cautions),
    )
