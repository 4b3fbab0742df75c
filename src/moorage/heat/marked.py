"""YAML text as a tree whose every node knows its line and its path.

Built from libyaml's events with a stack of our own, so that neither deep nesting nor an alias
bomb costs more than its text: depth and the size *after* expanding aliases are bounded while
the tree grows, and aliased nodes are shared. Scalars follow YAML 1.1 as Heat reads them:
times stay text, tags beyond the standard ones are refused. Stricter than Heat in one thing:
a key written twice is an error.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from moorage.domain.errors import InvalidDescription

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

MAX_TEXT: Final = 2_000_000
"""Characters of one file."""
MAX_NODES: Final = 200_000
"""Nodes after expanding aliases."""
MAX_DEPTH: Final = 60
_TEXT_PER_NODE: Final = 256

Scalar: TypeAlias = "str | int | float | bool | None"
Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"

_TAG: Final = "tag:yaml.org,2002:"
_SCALARS: Final = frozenset(f"{_TAG}{name}" for name in ("str", "int", "float", "bool", "null"))
_COLLECTIONS: Final = frozenset({None, f"{_TAG}map", f"{_TAG}seq"})
_MERGE: Final = f"{_TAG}merge"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class Marked:
    """A node: a scalar, a list or a mapping, with where it stands."""

    value: Scalar | list[Marked] | dict[str, Marked]
    line: int
    path: str
    size: int = 1
    """Nodes of the tree below, aliases expanded; long texts count for several."""
    depth: int = 1
    spelling: str | None = None
    """How a scalar was written, before YAML made a number or a boolean of it."""

    def plain(self) -> Plain:
        """The same without marks."""
        match self.value:
            case dict() as items:
                return {key: one.plain() for key, one in items.items()}
            case list() as items:
                return [one.plain() for one in items]
            case scalar:
                return scalar

    def invalid(self, message: str) -> InvalidDescription:
        """An error that names this place."""
        return InvalidDescription(message, path=self.path or None, line=self.line)


def mark(value: Plain, *, line: int, path: str) -> Marked:
    """Give a plain value the place of another one: what a function made, where it was called.

    Raises:
        InvalidDescription: it is too large or too deep.
    """
    return _mark(value, line, path, MAX_DEPTH)


def _mark(value: Plain, line: int, path: str, room: int) -> Marked:
    if room == 0:
        raise InvalidDescription(f"nested more than {MAX_DEPTH} deep", path=path, line=line)
    match value:
        case dict() as items:
            marked = {k: _mark(one, line, f"{path}.{k}", room - 1) for k, one in items.items()}
            return collection(marked, line, path)
        case list() as items:
            listed = [_mark(one, line, f"{path}[{i}]", room - 1) for i, one in enumerate(items)]
            return collection(listed, line, path)
        case str() as text:
            return Marked(text, line, path, 1 + len(text) // _TEXT_PER_NODE)
        case scalar:
            return Marked(scalar, line, path)


def parse(text: str, *, name: str = "") -> Marked:
    """Read one YAML document. `name` (of the file) starts every path, if given.

    Raises:
        InvalidDescription: not YAML, more than one document, beyond the bounds, a duplicate
            or non-scalar key, an unknown tag; with path and line.
    """
    if len(text) > MAX_TEXT:
        raise InvalidDescription(f"longer than {MAX_TEXT} characters", path=name or None)
    builder = _Builder(name)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            builder.take(event)
    except yaml.MarkedYAMLError as error:
        at = error.problem_mark or error.context_mark
        line = None if at is None else at.line + 1
        problem = error.problem or error.context or "cannot be read"
        raise InvalidDescription(f"not YAML: {problem}", path=name or None, line=line) from error
    except (yaml.YAMLError, UnicodeError) as error:
        message = str(error).splitlines()[0]
        raise InvalidDescription(f"not YAML: {message}", path=name or None, line=1) from error
    if builder.document is None:
        raise InvalidDescription("the file is empty", path=name or None, line=1)
    return builder.document


def collection(value: list[Marked] | dict[str, Marked], line: int, path: str) -> Marked:
    """A list or a mapping of nodes.

    Raises:
        InvalidDescription: it would be too large or too deep.
    """
    size, depth = 1, 0
    for child in value.values() if isinstance(value, dict) else value:
        size += child.size
        depth = max(depth, child.depth)
    marked = Marked(value, line, path, size, depth + 1)
    if size > MAX_NODES:
        raise marked.invalid(f"more than {MAX_NODES} values (aliases expanded)")
    if depth + 1 > MAX_DEPTH:
        raise marked.invalid(f"nested more than {MAX_DEPTH} deep")
    return marked


@dataclass(slots=True)
class _Open:
    """A collection whose end has not been seen yet."""

    is_map: bool
    line: int
    path: str
    anchor: str | None
    items: list[Marked] = field(default_factory=list)
    """Of a sequence; of a mapping the values, in step with `keys`."""
    keys: list[tuple[str, int]] = field(default_factory=list)
    """Keys and their lines; one more than `items` while a value is awaited."""
    merges: list[Marked] = field(default_factory=list)
    merging: bool = False

    @property
    def wants_key(self) -> bool:
        return self.is_map and not self.merging and len(self.keys) == len(self.items)

    def next_path(self) -> str:
        if self.merging:
            return f"{self.path}.<<"
        if self.is_map:
            key = self.keys[-1][0]
            return f"{self.path}.{key}" if self.path else key
        return f"{self.path}[{len(self.items)}]"


class _Builder:
    """Turns events into one marked tree."""

    def __init__(self, name: str) -> None:
        self.document: Marked | None = None
        self._name = name
        self._stack: list[_Open] = []
        self._anchors: dict[str, Marked] = {}
        self._resolver = yaml.resolver.Resolver()
        self._constructor = yaml.constructor.SafeConstructor()

    def take(self, event: yaml.Event) -> None:
        line = 1 if event.start_mark is None else event.start_mark.line + 1
        match event:
            case yaml.ScalarEvent():
                self._scalar(event, line)
            case yaml.AliasEvent():
                self._alias(str(event.anchor), line)
            case yaml.SequenceStartEvent() | yaml.MappingStartEvent():
                self._open(event, line)
            case yaml.SequenceEndEvent() | yaml.MappingEndEvent():
                self._close()
            case _:
                pass  # stream and document marks carry nothing

    def _here(self) -> str:
        return self._stack[-1].next_path() if self._stack else self._name

    def _invalid(self, message: str, line: int) -> InvalidDescription:
        path = self._stack[-1].path if self._stack else self._name
        return InvalidDescription(message, path=path or None, line=line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        tag = event.tag
        if tag is None or tag == "!":
            tag = self._resolve(event)
        if tag == f"{_TAG}timestamp":
            tag = f"{_TAG}str"
        if self._stack and self._stack[-1].wants_key:
            self._key(event.value, tag, line)
            return
        if tag in (_MERGE, f"{_TAG}value"):
            tag = f"{_TAG}str"
        if tag not in _SCALARS:
            raise self._invalid(f"unsupported tag {tag}", line)
        node = yaml.ScalarNode(tag, event.value)
        try:
            value = self._constructor.construct_object(node)
        except (ValueError, OverflowError, yaml.YAMLError) as error:
            raise self._invalid(f"not a value: {event.value[:40]!r}", line) from error
        finally:
            self._constructor.constructed_objects.clear()
        size = 1 + len(event.value) // _TEXT_PER_NODE
        self._put(Marked(value, line, self._here(), size, spelling=event.value), event.anchor)

    def _resolve(self, event: yaml.ScalarEvent) -> str:
        found = self._resolver.resolve(yaml.ScalarNode, event.value, event.implicit)  # type: ignore[no-untyped-call] # the stubs leave it bare
        return str(found)

    def _key(self, key: str, tag: str, line: int) -> None:
        parent = self._stack[-1]
        if tag == _MERGE:
            parent.merging = True
            return
        if any(key == known for known, _ in parent.keys):
            raise self._invalid(f"the key {key!r} is written twice", line)
        parent.keys.append((key, line))

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise self._invalid(f"*{anchor} stands inside &{anchor} itself or before it", line)
        if self._stack and self._stack[-1].wants_key:
            raise self._invalid("an alias cannot be a key", line)
        self._put(self._anchors[anchor], None)

    def _open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        if self._stack and self._stack[-1].wants_key:
            raise self._invalid("a key must be a word, not a list or a mapping", line)
        if event.tag not in _COLLECTIONS:
            raise self._invalid(f"unsupported tag {event.tag}", line)
        if len(self._stack) >= MAX_DEPTH:
            raise self._invalid(f"nested more than {MAX_DEPTH} deep", line)
        # An anchor may be taken again; until the new one is complete there is none.
        self._anchors.pop(event.anchor or "", None)
        is_map = isinstance(event, yaml.MappingStartEvent)
        self._stack.append(_Open(is_map, line, self._here(), event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        if done.is_map:
            own = dict(zip((key for key, _ in done.keys), done.items, strict=True))
            value = {**_merged(done.merges), **own}
            node = collection(value, done.line, done.path)
        else:
            node = collection(done.items, done.line, done.path)
        self._put(node, done.anchor)

    def _put(self, node: Marked, anchor: str | None) -> None:
        if anchor is not None:
            self._anchors[anchor] = node
        if not self._stack:
            if self.document is not None:
                raise self._invalid("more than one document", node.line)
            self.document = node
            return
        parent = self._stack[-1]
        if parent.merging:
            parent.merging = False
            parent.merges += _to_merge(node)
        else:
            parent.items.append(node)


def _to_merge(node: Marked) -> list[Marked]:
    several = node.value if isinstance(node.value, list) else [node]
    if not all(isinstance(one.value, dict) for one in several):
        raise node.invalid("<< takes a mapping or a list of mappings")
    return several


def _merged(merges: list[Marked]) -> Mapping[str, Marked]:
    """Merged keys, earlier mappings first to win, as the YAML merge key says."""
    found: dict[str, Marked] = {}
    for one in reversed(merges):
        found.update(_items(one))
    return found


def _items(node: Marked) -> Iterator[tuple[str, Marked]]:
    assert isinstance(node.value, dict), "checked when merged"
    yield from node.value.items()
