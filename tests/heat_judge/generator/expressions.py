"""Expressions of every type, from functions, parameters and conditions in reach."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.heat_judge.generator.language import has, raw

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from random import Random

TEXTS: Final = (
    *("m1.small", "m1.large", "c2", "gpu", "a", "b", "a-b", "x.y", "007", "1", "true", "ab,c"),
    *("null", "é", "A b", "%index%", "1.50", "no", "0x10"),
)
SAFE: Final = ("m1.small", "m1.large", "c2", "gpu", "tiny", "huge")
LIST: Final = "comma_delimited_list"
PLAIN: Final = ("010", "1_000", "0x1F", "yes", "12:30", "1e3", "2020-01-02", "~x", "1.0", "off")
"""Scalars without quotes whose type depends on who reads them."""


@dataclass
class Reach:
    """What an expression may refer to."""

    version: str
    parameters: dict[str, str] = field(default_factory=dict)
    """Name -> type."""
    paths: dict[str, list[tuple[str, tuple[Any, ...]]]] = field(default_factory=dict)
    """Type -> paths into parameters of type json and list that have such a value."""
    conditions: list[str] = field(default_factory=list)
    files: dict[str, str] = field(default_factory=dict)
    root: bool = True
    """Whether the stack has the name it was given; nested ones get a random one."""


class Expressions:
    """Random expressions within reach; `depth` says how far functions may nest."""

    def __init__(self, random: Random, reach: Reach) -> None:
        self.random = random
        self.reach = reach

    def text(self, depth: int = 3) -> Any:
        """Gives text."""
        ways: list[Callable[[int], Any]] = [self._literal, self._literal]
        if depth > 0:
            ways += [
                *([self._parameter("string")] * 3 if self._named("string") else []),
                *([self._path("string")] if self._paths("string") else []),
                self._join,
                self._replace,
                *self._if(self.text),
                *self._when("digest", self._digest),
                *self._when("make_url", self._url),
                *self._when("str_split", self._split_index),
                *self._when("yaql", self._yaql_text),
                *self._when("Fn::Select", self._fn_select),
                *self._when("Fn::Join", self._fn_join),
                *self._when("Fn::Replace", self._fn_replace),
                *([self._file] if self.reach.files else []),
                *([lambda _depth: {"get_param": "OS::stack_name"}] if self.reach.root else []),
            ]
        return self.random.choice(ways)(depth - 1)

    def whole(self, depth: int = 2, most: int = 3) -> Any:
        """Gives a small whole number, or its digits."""
        number = self.random.randint(0, most)
        ways: list[Callable[[int], Any]] = [lambda _depth: number, lambda _depth: str(number)]
        if depth > 0:
            ways += [
                *([self._parameter("number")] * 4 if self._named("number") else []),
                *([self._path("number")] if self._paths("number") else []),
                *self._if(lambda depth: self.whole(depth, most)),
                *self._when("yaql", self._yaql_length),
            ]
        return self.random.choice(ways)(depth - 1)

    def listed(self, depth: int = 2) -> Any:
        """Gives a list of texts."""
        ways: list[Callable[[int], Any]] = [self._list, self._list]
        if depth > 0:
            ways += [
                *([self._parameter(LIST)] * 3 if self._named(LIST) else []),
                *([self._path("list")] if self._paths("list") else []),
                *self._if(self.listed),
                *self._when("str_split", self._split),
                *self._when("repeat", self._repeat),
                *self._when("filter", self._filter),
                *self._when("list_concat", self._concat),
                *self._when("yaql", self._yaql_list),
            ]
        return self.random.choice(ways)(depth - 1)

    def mapped(self, depth: int = 2) -> Any:
        """Gives a mapping of text to text."""
        ways: list[Callable[[int], Any]] = [self._map, self._map]
        if depth > 0:
            ways += [
                *([self._path("map")] if self._paths("map") else []),
                *self._if(self.mapped),
                *self._when("map_merge", self._merge),
                *self._when("map_replace", self._map_replace),
                *self._when("repeat over a mapping", self._repeat_map),
            ]
        return self.random.choice(ways)(depth - 1)

    def condition(self, depth: int = 2) -> Any:
        """Gives true or false."""
        ways: list[Callable[[int], Any]] = [
            self._equals,
            *([self._name] * 2 if self.reach.conditions else []),
            *([self._parameter("boolean")] * 2 if self._named("boolean") else []),
        ]
        if depth > 0:
            ways += [
                lambda depth: {"not": self.condition(depth)},
                lambda depth: {"and": [self.condition(depth) for _ in self._few(2)]},
                lambda depth: {"or": [self.condition(depth) for _ in self._few(2)]},
                *self._when("condition by contains", self._contains),
            ]
        return self.random.choice(ways)(depth - 1)

    def definition(self) -> Any:
        """Gives true or false, and is more than the name of another condition."""
        while isinstance(found := self.condition(), str):
            pass
        return found

    def simple(self) -> Any:
        """Gives one of few texts, by a parameter, a condition or as it is."""
        ways: list[Callable[[int], Any]] = [lambda _depth: self.random.choice(SAFE)]
        ways += [*([self._parameter("string")] * 2 if self._named("string") else [])]
        ways += self._if(lambda _depth: self.random.choice(SAFE))
        return self.random.choice(ways)(1)

    # --- of text ---------------------------------------------------------------------------------

    def _literal(self, _depth: int) -> Any:
        if self.random.random() < 0.05:
            return raw(self.random.choice(PLAIN))
        return self.random.choice(TEXTS)

    def _join(self, depth: int) -> Any:
        between = self.random.choice(("", "-", ".", ", "))
        if has(self.reach.version, "join of several lists"):
            lists = [self.listed(depth) for _ in self._few(1)]
            if self.random.random() < 0.2:
                lists.append([self.mapped(0)])
            return {"list_join": [between, *lists]}
        return {"list_join": [between, self._list(depth)]}

    def _replace(self, depth: int) -> Any:
        params: dict[str, Any] = {
            key: self.text(depth) for key in self.random.sample(("$a", "$ab", "%b%", "c"), 2)
        }
        if has(self.reach.version, "json in text") and self.random.random() < 0.3:
            either = self.random.choice((self.mapped, self.listed))
            params["$json"] = either(depth)
        template: Any = "-".join([*params, self.random.choice(("", "$a$ab", "c%b%c"))])
        name = "str_replace"
        strict = [one for one in ("str_replace_strict",) if has(self.reach.version, one)]
        if strict and self.random.random() < 0.3:
            name = self.random.choice(strict)
        if self.random.random() < 0.2:
            template = {"list_join": ["", [template, "c"]]}
        return {name: {"template": template, "params": params}}

    def _digest(self, depth: int) -> Any:
        return {"digest": [self.random.choice(("md5", "sha1", "sha256")), self.text(depth)]}

    def _url(self, depth: int) -> Any:
        host = self.random.choice(("h", "::1", "10.0.0.1"))
        url: dict[str, Any] = {"scheme": "http", "host": host}
        if self.random.random() < 0.5:
            url["port"] = self.random.choice((80, "8080"))
        if self.random.random() < 0.5:
            url["path"] = self.random.choice(("/p", "p", "/a b"))
        if self.random.random() < 0.3:
            url["query"] = {"k": self.random.choice(SAFE)}
        if self.random.random() < 0.2:
            url |= {"username": "u", "password": "p w", "fragment": "f"}
        return {"make_url": url}

    def _split_index(self, _depth: int) -> Any:
        text = self.random.choice(("c2,gpu,a", "x,y"))
        return {"str_split": [",", text, self.random.choice((0, 1))]}

    def _fn_select(self, depth: int) -> Any:
        if self.random.random() < 0.5:
            return {"Fn::Select": [self.random.choice((0, "1", "7")), ["a", self.text(depth)]]}
        return {"Fn::Select": ["k", {"k": self.text(depth), "l": "x"}]}

    def _fn_join(self, depth: int) -> Any:
        return {"Fn::Join": ["-", [self.text(depth), "end"]]}

    def _fn_replace(self, depth: int) -> Any:
        return {"Fn::Replace": [{"$a": self.text(depth), "b": "x"}, "b-$a-b"]}

    def _file(self, _depth: int) -> Any:
        return {"get_file": self.random.choice(sorted(self.reach.files))}

    def _yaql_text(self, depth: int) -> Any:
        expression, data = self.random.choice(
            (
                ("$.data.a", {"a": self.text(depth)}),
                ("$.data.l.first()", {"l": ["c2", self.text(depth)]}),
                ("$.data.l.join('-')", {"l": ["x", "y"]}),
                ("$.data.a.toUpper()", {"a": "gpu"}),
                ("$.data.a.replace('m', 'n')", {"a": "m1.small"}),
                ("concat($.data.a, '-', $.data.b)", {"a": "a", "b": self.text(depth)}),
                ("switch($.data.n > 2 => 'many', true => 'few')", {"n": self.random.randint(1, 4)}),
                ("str($.data.n + 1)", {"n": 3}),
            )
        )
        return {"yaql": {"expression": expression, "data": data}}

    # --- of numbers and lists --------------------------------------------------------------------

    def _yaql_length(self, _depth: int) -> Any:
        return {"yaql": {"expression": "$.data.len()", "data": ["a"] * self.random.randint(0, 3)}}

    def _list(self, depth: int) -> list[Any]:
        return [self.text(min(depth, 1)) for _ in self._few(1)]

    def _split(self, _depth: int) -> Any:
        return {"str_split": self.random.choice(([",", "a,b,c"], ["-", "x-y"]))}

    def _repeat(self, depth: int) -> Any:
        loops: dict[str, Any] = {"%i%": self.listed(depth)}
        body = self.random.choice(("n-%i%", "%i%", "%i%%j%"))
        if self.random.random() < 0.5:
            loops["%j%"] = self.listed(0)
            body = "%i%.%j%"
        asked: dict[str, Any] = {"for_each": loops, "template": body}
        if has(self.reach.version, "repeat without permutations") and self.random.random() < 0.4:
            asked["for_each"] = {"%i%": ["a", "b"], "%j%": [self.text(0), "y"]}
            asked["permutations"] = False
        elif has(self.reach.version, "repeat over a mapping") and self.random.random() < 0.3:
            asked["for_each"] = {"%i%": {"k": "v", "l": "w"}}
            asked["template"] = "%i%"
        return {"repeat": asked}

    def _filter(self, depth: int) -> Any:
        return {"filter": [[self.random.choice(TEXTS), "a"], self.listed(depth)]}

    def _concat(self, depth: int) -> Any:
        name = self.random.choice(("list_concat", "list_concat_unique"))
        return {name: [self.listed(depth) for _ in self._few(1)]}

    def _yaql_list(self, depth: int) -> Any:
        expression = self.random.choice(
            (
                "$.data.where($ != 'a')",
                "$.data.select($ + '-x')",
                "$.data.distinct()",
                "$.data.orderBy($)",
                "$.data.take(1)",
                "$.data.reverse()",
                "list($.data, 'z').flatten()",
            )
        )
        return {"yaql": {"expression": expression, "data": self._list(depth)}}

    # --- of mappings -----------------------------------------------------------------------------

    def _map(self, depth: int) -> dict[str, Any]:
        keys = self.random.sample(("k", "l", "m", "n"), self.random.randint(1, 3))
        return {key: self.text(min(depth, 1)) for key in keys}

    def _merge(self, depth: int) -> Any:
        return {"map_merge": [self.mapped(depth) for _ in self._few(1)]}

    def _map_replace(self, depth: int) -> Any:
        changes = {"keys": {"k": "q", "absent": "r"}, "values": {"a": "z", "m1.small": "s"}}
        chosen = self.random.choice((["keys"], ["values"], ["keys", "values"]))
        return {"map_replace": [self.mapped(depth), {one: changes[one] for one in chosen}]}

    def _repeat_map(self, depth: int) -> Any:
        loops = {"%i%": self._list(depth)}
        return {"map_merge": {"repeat": {"for_each": loops, "template": {"k%i%": "v%i%"}}}}

    # --- of conditions ---------------------------------------------------------------------------

    def _name(self, _depth: int) -> Any:
        return self.random.choice(self.reach.conditions)

    def _equals(self, _depth: int) -> Any:
        named = [name for name, kind in self.reach.parameters.items() if kind != "json"]
        if not named:
            return {"equals": [self.random.choice(SAFE), self.random.choice(SAFE)]}
        name = self.random.choice(named)
        other: Any = self.random.choice((*SAFE, 1, 2, "1", True, "true", ["a", "b"]))
        if self.random.random() < 0.3:
            other = {"get_param": self.random.choice(named)}
        return {"equals": [{"get_param": name}, other]}

    def _contains(self, _depth: int) -> Any:
        lists = self._named(LIST)
        where: Any = {"get_param": self.random.choice(lists)} if lists else ["a", "c2"]
        return {"contains": [self.random.choice(TEXTS), where]}

    # --- what all share --------------------------------------------------------------------------

    def _if(self, value: Callable[[int], Any]) -> list[Callable[[int], Any]]:
        if not self.reach.conditions or not has(self.reach.version, "if"):
            return []

        def chosen(depth: int) -> Any:
            named = self._name(0) if self.random.random() < 0.7 else self.condition(1)
            return {"if": [named, value(depth), value(depth)]}

        return [chosen] * 2

    def _when(self, what: str, way: Callable[[int], Any]) -> list[Callable[[int], Any]]:
        return [way] if has(self.reach.version, what) else []

    def _named(self, kind: str) -> Sequence[str]:
        return [name for name, one in self.reach.parameters.items() if one == kind]

    def _paths(self, kind: str) -> Sequence[tuple[str, tuple[Any, ...]]]:
        return self.reach.paths.get(kind, [])

    def _parameter(self, kind: str) -> Callable[[int], Mapping[str, Any]]:
        name = self.random.choice(self._named(kind))
        old = has(self.reach.version, "Ref") and self.random.random() < 0.3
        return lambda _depth: {"Ref" if old else "get_param": name}

    def _path(self, kind: str) -> Callable[[int], Mapping[str, Any]]:
        name, path = self.random.choice(self._paths(kind))
        return lambda _depth: {"get_param": [name, *path]}

    def _few(self, least: int) -> range:
        return range(self.random.randint(least, least + 1))
