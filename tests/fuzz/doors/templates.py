"""Heat templates made to be expensive: to parse, to expand, to match and to place."""

from collections.abc import Callable
from random import Random
from typing import Final

HEAD: Final = "heat_template_version: 2021-04-16\n"
SERVER: Final = "{type: OS::Nova::Server, properties: {flavor: m1.small, image: i}}"


def template(dice: Random) -> str:
    """One of them, in one of its sizes."""
    return dice.choice(_MAKERS)(dice)


def _servers(dice: Random) -> str:
    count = dice.choice((1, 10, 300, 2_000, 5_000))
    lines = [f"  s{number}: {SERVER}" for number in range(count)]
    return HEAD + "resources:\n" + "\n".join(lines) + "\n"


def _group(dice: Random) -> str:
    count = dice.choice((1, 50, 2_000, 10**6, 10**30, -1))
    return (
        f"{HEAD}resources:\n  g:\n    type: OS::Heat::ResourceGroup\n    properties:\n"
        f"      count: {count}\n      resource_def: {SERVER}\n"
    )


def _nested_groups(dice: Random) -> str:
    inner = SERVER
    for _ in range(dice.choice((2, 5, 30))):
        inner = (
            "{type: OS::Heat::ResourceGroup, properties: {count: 10, resource_def: " + inner + "}}"
        )
    return f"{HEAD}resources:\n  g: {inner}\n"


def _pattern(dice: Random) -> str:
    pattern = dice.choice(
        ("(a|.)(a|.)" * 20 + "b", "(a+)+$", "(.*)*x", "a{1000}{1000}", "(" * 500, "(?=a)", r"(a)\1")
    )
    value = "a" * dice.choice((30, 400, 50_000))
    return (
        f"{HEAD}parameters:\n  p:\n    type: string\n    default: {value}\n"
        f"    constraints: [{{allowed_pattern: '{pattern}'}}]\n"
        f"resources: {{s: {SERVER}}}\n"
    )


def _keys(dice: Random) -> str:
    count = dice.choice((100, 5_000, 30_000))
    return HEAD + "".join(f"k{number}: 1\n" for number in range(count))


def _merges(dice: Random) -> str:
    count = dice.choice((10, 500, 3_000))
    merged = "".join(f"  m{number}: {{<<: *a, <<: *a}}\n" for number in range(count))
    return f"{HEAD}x: &a {{b: 1, c: 2}}\nresources:\n{merged}"


def _aliases(dice: Random) -> str:
    lines = ["a0: &a0 [1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [
        f"a{depth}: &a{depth} [{', '.join([f'*a{depth - 1}'] * 9)}]"
        for depth in range(1, dice.choice((4, 12, 60)))
    ]
    return HEAD + "\n".join(lines) + "\n"


def _numbers(dice: Random) -> str:
    number = dice.choice(
        (":".join(["59"] * 50_000), "0x" + "f" * 100_000, "9" * 100_000, "1_" * 10_000 + "1")
    )
    parameters = f"parameters: {{n: {{type: number, default: {number}}}}}"
    return f"{HEAD}{parameters}\nresources: {{s: {SERVER}}}\n"


def _deep(dice: Random) -> str:
    depth = dice.choice((50, 500, 20_000))
    return f"{HEAD}resources: {'[' * depth}{']' * depth}\n"


def _repeat(dice: Random) -> str:
    items = ", ".join(map(str, range(dice.choice((3, 30, 300)))))
    each = ", ".join(f"'%{letter}%': [{items}]" for letter in "abcd")
    return (
        f"{HEAD}resources:\n  s:\n    type: OS::Nova::Server\n    properties:\n"
        "      flavor: m1.small\n      image: i\n"
        f"      metadata: {{repeat: {{for_each: {{{each}}}, template: '%a%%b%%c%%d%'}}}}\n"
    )


def _replace(dice: Random) -> str:
    text = "{str_replace: {template: x, params: {x: xxxxxxxxxx}}}"
    for _ in range(dice.choice((2, 8, 30))):
        text = f"{{str_replace: {{template: {text}, params: {{x: xxxxxxxxxx}}}}}}"
    return (
        f"{HEAD}resources:\n  s: {{type: OS::Nova::Server, properties: "
        f"{{flavor: {text}, image: i}}}}\n"
    )


def _conditions(dice: Random) -> str:
    condition = "{equals: [1, 1]}"
    for _ in range(dice.choice((2, 50, 400))):
        condition = f"{{not: {condition}}}"
    return f"{HEAD}conditions: {{c: {condition}}}\nresources: {{s: {SERVER}}}\n"


def _circles(dice: Random) -> str:
    del dice
    return (
        f"{HEAD}conditions: {{a: {{not: b}}, b: {{not: a}}}}\n"
        "resources:\n  s: {type: OS::Nova::Server, condition: a, depends_on: t,"
        " properties: {flavor: {get_attr: [t, name]}, image: i}}\n"
        "  t: {type: OS::Nova::Server, depends_on: s,"
        " properties: {flavor: {get_attr: [s, name]}, image: i}}\n"
    )


_MAKERS: Final[tuple[Callable[[Random], str], ...]] = (
    _servers,
    _group,
    _nested_groups,
    _pattern,
    _keys,
    _merges,
    _aliases,
    _numbers,
    _deep,
    _repeat,
    _replace,
    _conditions,
    _circles,
)
