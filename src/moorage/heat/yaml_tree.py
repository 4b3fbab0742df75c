"""YAML text as a tree whose nodes know line and path.

Built from libyaml's events with a stack of our own, so that neither deep nesting nor an alias
bomb costs more than its text: depth and the size *after* expanding aliases and merges are bounded
while the tree grows, and aliased nodes are shared. Scalars are read by `scalars`. A key written
twice is an error, except where Heat's own reading is asked for.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, TypeAlias

import yaml

from moorage.domain import deadline
from moorage.domain.errors import InvalidDescription
from moorage.heat import scalars
from moorage.heat.scalars import Scalar, excerpt, unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from moorage.heat.remarks import Remarks

MAX_TEXT: Final = 2_000_000
"""Characters of one file."""
MAX_NODES: Final = 200_000
"""Nodes after expanding aliases; long texts and paths count for several."""
MAX_DEPTH: Final = 60


@dataclass(frozen=True, slots=True)
class YamlLimits:
    """How large a file may be."""

    text: int = MAX_TEXT
    nodes: int = MAX_NODES


USUAL: Final = YamlLimits()
MAX_HANDLES: Final = 1000
"""How often a file may say %TAG."""
_TEXT_PER_NODE: Final = 256
_LONGEST_MESSAGE: Final = 1000
"""Characters of an error's message, which may say values."""

Plain: TypeAlias = "Scalar | list[Plain] | dict[str, Plain]"

_TAG: Final = "tag:yaml.org,2002:"
_COLLECTIONS: Final = frozenset({None, f"{_TAG}map", f"{_TAG}seq"})
_MERGE: Final = f"{_TAG}merge"
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True)
class YamlNode:
    """A YAML node: a scalar, list or mapping, with its line and path."""

    value: Scalar | list[YamlNode] | dict[str, YamlNode]
    line: int
    path: str
    size: int = 1
    """Nodes of the tree below, aliases expanded; long texts count for several."""
    depth: int = 1
    spelling: str | None = None
    """How a scalar was written, before YAML made a number or a boolean of it."""

    def plain(self) -> Plain:
        """The value as plain Python objects."""
        match self.value:
            case dict() as items:
                return {key: one.plain() for key, one in items.items()}
            case list() as items:
                return [one.plain() for one in items]
            case scalar:
                return scalar

    def invalid(self, message: str) -> InvalidDescription:
        """An error with this node's line and path; of a long message only the beginning."""
        if len(message) > _LONGEST_MESSAGE:
            message = f"{message[:_LONGEST_MESSAGE]}\u2026"
        return InvalidDescription(message, path=self.path or None, line=self.line)


def to_node(value: Plain, *, line: int, path: str) -> YamlNode:
    """Mark a plain value with a given place, such as a function's result with the call's.

    Raises:
        InvalidDescription: it is too large or too deep.
    """
    return _NodeMaker(line).node(value, path, MAX_DEPTH)


class _NodeMaker:
    """Makes nodes from plain values, counting them against the limit."""

    def __init__(self, line: int) -> None:
        self._line = line
        self._size = 0

    def node(self, value: Plain, path: str, room: int) -> YamlNode:
        if room == 0:
            raise self._invalid(f"nested more than {MAX_DEPTH} deep", path)
        size = _cost(value if isinstance(value, str) else "", path)
        self._size += size
        if self._size > MAX_NODES:
            raise self._invalid(f"more than {MAX_NODES} values", path)
        match value:
            case dict() as items:
                named = {k: self.node(one, f"{path}.{k}", room - 1) for k, one in items.items()}
                return collection_node(named, self._line, path)
            case list() as items:
                listed = [self.node(v, f"{path}[{i}]", room - 1) for i, v in enumerate(items)]
                return collection_node(listed, self._line, path)
            case scalar:
                if (why := unwritable(scalar)) is not None:
                    raise self._invalid(why, path)
                return YamlNode(scalar, self._line, path, size)

    def _invalid(self, message: str, path: str) -> InvalidDescription:
        return InvalidDescription(message, path=path, line=self._line)


def _cost(text: str, path: str) -> int:
    """The cost of a node with this text and path."""
    return 1 + (len(text) + len(path)) // _TEXT_PER_NODE


def parse(
    text: str, *, name: str = "", remarks: Remarks | None = None, limits: YamlLimits = USUAL
) -> YamlNode:
    """Read one YAML document. `name` (of the file) starts every path, if given.

    With `remarks` a text is read as Heat reads templates: of a key that is written twice the last
    value counts, which is remarked on, and any JSON is read, also such as is no YAML.

    Raises:
        InvalidDescription: not YAML, more than one document, beyond the bounds, a duplicate
            or non-scalar key, an unknown tag; with path and line.
        TimeExpired: the deadline of the request has passed.
    """
    if len(text) > limits.text:
        raise InvalidDescription(f"longer than {limits.text} characters", path=name or None)
    if text.count("%TAG") > MAX_HANDLES:
        # Each is compared with all before it, in the library.
        raise InvalidDescription(f"more than {MAX_HANDLES} %TAG directives", path=name or None)
    builder = _Builder(name, remarks, limits.nodes)
    try:
        for event in yaml.parse(text, Loader=_LOADER):
            deadline.check()
            builder.take(event)
    except yaml.YAMLError as error:
        found = None if remarks is None else _json(text, name)
        if found is None:
            raise _not_yaml(error, name, text) from error
        return found
    except UnicodeError as error:
        raise _not_yaml(error, name, text) from error
    if builder.document is None:
        raise InvalidDescription("the file is empty", path=name or None, line=1)
    return builder.document


def _not_yaml(error: Exception, name: str, text: str) -> InvalidDescription:
    if isinstance(error, yaml.MarkedYAMLError):
        at = error.problem_mark or error.context_mark
        problem = error.problem or error.context or "cannot be read"
        lines = text.splitlines()
        if at is not None and at.line < len(lines) and lines[at.line][at.column :][:1] == "\t":
            problem = "there is a tab; indent with blanks"
        return InvalidDescription(
            f"not YAML: {problem}", path=name or None, line=None if at is None else at.line + 1
        )
    message = str(error).splitlines()[0]
    return InvalidDescription(f"not YAML: {message}", path=name or None, line=1)


def _json(text: str, name: str) -> YamlNode | None:
    """The value of a JSON text, all of it in line 1; None for any other text."""
    try:
        value: Plain = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return to_node(value, line=1, path=name)


def collection_node(
    value: list[YamlNode] | dict[str, YamlNode], line: int, path: str, most: int = MAX_NODES
) -> YamlNode:
    """A list or a mapping of nodes.

    Raises:
        InvalidDescription: it would be too large or too deep.
    """
    size, depth = 1, 0
    for child in value.values() if isinstance(value, dict) else value:
        size += child.size
        depth = max(depth, child.depth)
    marked = YamlNode(value, line, path, size, depth + 1)
    if size > most:
        raise marked.invalid(f"more than {most} values (aliases expanded)")
    if depth + 1 > MAX_DEPTH:
        raise marked.invalid(f"nested more than {MAX_DEPTH} deep")
    return marked


@dataclass(slots=True)
class _OpenCollection:
    """A collection that is being read."""

    is_map: bool
    line: int
    path: str
    anchor: str | None
    items: list[YamlNode] = field(default_factory=list)
    """Of a sequence; of a mapping the values, in step with `keys`."""
    keys: list[tuple[str, int]] = field(default_factory=list)
    """Keys and their lines; one more than `items` while a value is awaited."""
    known: set[str] = field(default_factory=set)
    """The same keys, to be found at once."""
    merges: list[YamlNode] = field(default_factory=list)
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
    """Builds a tree of nodes from YAML events."""

    def __init__(self, name: str, remarks: Remarks | None, most: int) -> None:
        self._remarks = remarks
        self._most = most
        self.document: YamlNode | None = None
        self._name = name
        self._stack: list[_OpenCollection] = []
        self._anchors: dict[str, YamlNode] = {}
        self._size = 0

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

    def _spend(self, amount: int, line: int) -> None:
        """Count nodes against the limit before they are built."""
        self._size += amount
        if self._size > self._most:
            raise self._invalid(f"more than {self._most} values (aliases expanded)", line)

    def _scalar(self, event: yaml.ScalarEvent, line: int) -> None:
        text: str = event.value
        tag = event.tag
        if tag is None or tag == "!":
            tag = scalars.tag_of(text, plain=event.implicit[0])
        if self._stack and self._stack[-1].wants_key:
            if not scalars.is_known(tag):
                raise self._invalid(f"unsupported tag {excerpt(tag)}", line)
            self._key(text, tag, line)
            return
        path = self._here()
        size = _cost(text, path)
        self._spend(size, line)
        try:
            value = scalars.value_of(text, tag)
        except ValueError as error:
            raise self._invalid(str(error), line) from error
        self._put(YamlNode(value, line, path, size, spelling=text), event.anchor)

    def _key(self, key: str, tag: str, line: int) -> None:
        parent = self._stack[-1]
        if tag == _MERGE:
            parent.merging = True
            return
        if (why := unwritable(key)) is not None:
            raise self._invalid(why, line)
        if key in parent.known:
            if self._remarks is None:
                raise self._invalid(f"the key {excerpt(key)} is written twice", line)
            self._remarks.add(
                f"{parent.path or 'the template'} (line {line}): the key {excerpt(key)} is written"
                " twice; the last value counts, as for Heat"
            )
        self._spend(len(key) // _TEXT_PER_NODE, line)
        parent.known.add(key)
        parent.keys.append((key, line))

    def _alias(self, anchor: str, line: int) -> None:
        if anchor not in self._anchors:
            raise self._invalid(f"*{anchor} stands inside &{anchor} itself or before it", line)
        if self._stack and self._stack[-1].wants_key:
            raise self._invalid("an alias cannot be a key", line)
        node = self._anchors[anchor]
        self._spend(node.size, line)
        self._put(node, None)

    def _open(self, event: yaml.CollectionStartEvent, line: int) -> None:
        deadline.check()
        if self._stack and self._stack[-1].wants_key:
            raise self._invalid("a key must be a word, not a list or a mapping", line)
        if event.tag not in _COLLECTIONS:
            raise self._invalid(f"unsupported tag {excerpt(str(event.tag))}", line)
        if len(self._stack) >= MAX_DEPTH:
            raise self._invalid(f"nested more than {MAX_DEPTH} deep", line)
        # An anchor may be taken again; until the new one is complete there is none.
        self._anchors.pop(event.anchor or "", None)
        is_map = isinstance(event, yaml.MappingStartEvent)
        path = self._here()
        self._spend(_cost("", path), line)
        self._stack.append(_OpenCollection(is_map, line, path, event.anchor))

    def _close(self) -> None:
        done = self._stack.pop()
        if done.is_map:
            own = dict(zip((key for key, _ in done.keys), done.items, strict=True))
            value = {**_merged(done.merges), **own}
            node = collection_node(value, done.line, done.path, self._most)
        else:
            node = collection_node(done.items, done.line, done.path, self._most)
        self._put(node, done.anchor)

    def _put(self, node: YamlNode, anchor: str | None) -> None:
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


def _to_merge(node: YamlNode) -> list[YamlNode]:
    several = node.value if isinstance(node.value, list) else [node]
    if not all(isinstance(one.value, dict) for one in several):
        raise node.invalid("<< takes a mapping or a list of mappings")
    return several


def _merged(merges: list[YamlNode]) -> Mapping[str, YamlNode]:
    """The merged mappings, of which earlier ones win, as in YAML's merge key."""
    found: dict[str, YamlNode] = {}
    for one in reversed(merges):
        found.update(_items(one))
    return found


def _items(node: YamlNode) -> Iterator[tuple[str, YamlNode]]:
    assert isinstance(node.value, dict), "checked when merged"
    yield from node.value.items()
