"""What a template costs: time linear in its text and in what it expands to, and bounded."""

import sys
import tracemalloc
from collections.abc import Callable
from types import FrameType, MappingProxyType

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source, compile_template
from moorage.heat.deferred_values import refuse_deferred
from moorage.heat.functions import resolve
from moorage.heat.paths import ROOT
from moorage.heat.placed_template import prepare
from moorage.heat.scope import Scope
from moorage.heat.standalone_template import output_names
from moorage.heat.template_writer import TemplateDecision
from moorage.heat.versions import VERSIONS
from moorage.heat.work_limit import MAX_WORK, Work
from moorage.heat.yaml_tree import MAX_HANDLES, parse, to_node

HEAD = "heat_template_version: wallaby\n"
SERVER = "resources: {s: {type: OS::Nova::Server, properties: {flavor: a}}}\n"
FACTOR = 8


def steps(work: Callable[[], object]) -> int:
    """Calls of functions, and resumptions of generators, that the work takes."""
    count = 0

    def counted(_frame: FrameType, _event: str, _about: object) -> None:
        nonlocal count
        count += 1

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def servers(number: int) -> Source:
    lines = (
        f"  s{i}: {{type: OS::Nova::Server, properties: {{flavor: a}}}}\n" for i in range(number)
    )
    return Source(HEAD + "resources:\n" + "".join(lines))


def group(number: int) -> Source:
    return Source(
        HEAD
        + "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: "
        + str(number)
        + ", resource_def: {type: OS::Nova::Server, properties: {flavor: a, name: x-%index%}}}}}"
    )


def stacks(number: int) -> Source:
    nested = HEAD + "parameters: {p: {type: string, default: a}}\n" + SERVER
    return Source(
        HEAD
        + "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: "
        + str(number)
        + ", resource_def: {type: n.yaml, properties: {p: b}}}}}",
        files={"n.yaml": nested},
    )


def conditions(number: int) -> Source:
    lines = "".join(f"  c{i}: {{equals: [a, a]}}\n" for i in range(number))
    return Source(HEAD + "conditions:\n" + lines + SERVER)


def keys(number: int) -> Source:
    lines = "".join(f"    k{i}: v\n" for i in range(number))
    return Source(HEAD + SERVER + "outputs:\n  o:\n" + lines)


def emitted(source: Source) -> None:
    compiled = compile_template(source)
    places = MappingProxyType({one: {"rack": "r"} for one in compiled.keys})
    prepare(source, compiled).with_decision(TemplateDecision("e", "d", places))


@pytest.mark.parametrize("source", [servers, group, stacks, conditions, keys])
def test_a_template_costs_as_much_as_it_is_long(source: Callable[[int], Source]) -> None:
    few, many = source(30), source(30 * FACTOR)
    emitted(few)  # what is made once is made
    assert steps(lambda: emitted(many)) < 1.5 * FACTOR * steps(lambda: emitted(few))


def test_files_of_one_name_are_told_apart_in_linear_time() -> None:
    def names(number: int) -> dict[str, str]:
        return output_names("../" * i + "a" for i in range(number))

    assert sorted(names(4).values()) == ["2-a", "3-a", "4-a", "a"]
    assert steps(lambda: names(30 * FACTOR)) < 1.5 * FACTOR * steps(lambda: names(30))


MERGED = "a: &a {" + ", ".join(f"k{i}: 1" for i in range(5_000)) + "}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("a: 1" + ":1" * 900_000, "more than 400 characters"),
        ("a: 0x" + "f" * 1_000_000, "more than 400 characters"),
        ("a: 0b" + "1" * 1_000_000, "more than 400 characters"),
        ("a: -" + "9" * 5_000, "more than 400 characters"),
        ("a: " + "9" * 5_000 + ".5", "more than 400 characters"),
        ("a: 1.0e+400", "not a finite number"),
        ("a: .inf", "not a finite number"),
        ("a: .nan", "not a finite number"),
        ("a: !!int ''", "not a value"),
        ("a: !!bool maybe", "not a value"),
        ("!foo a: 1", "unsupported tag"),
        (MERGED + "b:\n" + "- {<<: *a}\n" * 100_000, "more than 200000 values"),
        (MERGED + "b: {<<: [" + "*a, " * 300_000 + "]}", "more than 200000 values"),
        ("? " + "k" * 100_000 + "\n: [" + "1, " * 300_000 + "]", "more than 200000 values"),
        ("[" + "1, " * 210_000 + "]", "more than 200000 values"),
        ("%TAG !a! b\n" * (MAX_HANDLES + 1) + "--- a", "%TAG"),
    ],
    ids=range(16),
)
def test_what_would_cost_more_than_its_text_is_refused(text: str, said: str) -> None:
    with pytest.raises(InvalidDescription, match=said) as caught:
        parse(text, name="file")
    assert caught.value.path is not None


def test_numbers_as_long_as_anybody_writes_them_are_read() -> None:
    text = f"[{'9' * 400}, 190:20:30, 0x1f, 1.5e+3, -0, '{'9' * 5_000}']"
    assert parse(text).plain() == [10**400 - 1, 685230, 31, 1500.0, 0, "9" * 5_000]


@pytest.mark.parametrize("value", [float("inf"), float("nan"), 10**400, -(10**400)])
def test_a_number_of_the_call_that_json_cannot_say_names_its_place(value: float) -> None:
    with pytest.raises(InvalidDescription) as caught:
        to_node({"a": [value]}, line=1, path="parameters.p")
    assert caught.value.path == "parameters.p.a[0]"


def test_long_paths_count_as_the_text_they_are() -> None:
    with pytest.raises(InvalidDescription, match="more than 200000 values"):
        to_node({"k" * 100_000: [1] * 100_000}, line=1, path="p")


@pytest.mark.parametrize("said", ["1e400", "-1e400", "nan", "inf", "9" * 401])
def test_a_parameter_that_is_no_finite_number_is_refused(said: str) -> None:
    text = HEAD + "parameters: {n: {type: number}}\n" + SERVER
    with pytest.raises(InvalidDescription, match="must be a number") as caught:
        compile_template(Source(text, parameters={"n": said}))
    assert caught.value.path == "parameters.n"


def test_merges_that_double_are_written_once() -> None:
    levels = "".join(
        f"    m{i}: &m{i} {{<<: [*m{i - 1}, *m{i - 1}], k{i}: 1}}\n" for i in range(1, 40)
    )
    source = Source(HEAD + SERVER + "outputs:\n  o:\n    m0: &m0 {k0: 1}\n" + levels)
    prepare(source, compile_template(source))


@pytest.mark.parametrize(
    ("functions", "parameters"),
    [
        (
            "{str_replace: {template: {get_param: t}, params: {get_param: p}}}",
            {"t": "y" * 500_000, "p": {f"key{i}": "v" for i in range(5_000)}},
        ),
        (
            "[" + "{get_param: p}, " * 20_000 + "]",
            {"t": "", "p": {f"key{i}": "v" for i in range(20_000)}},
        ),
        (
            "[" + "{list_join: ['', [{get_param: t}, {get_param: t}]]}, " * 2_000 + "]",
            {"t": "y" * 900_000, "p": {}},
        ),
    ],
    ids=["keys", "maps", "texts"],
)
def test_functions_are_paid_for_in_values(functions: str, parameters: dict[str, str]) -> None:
    text = (
        HEAD
        + "parameters: {t: {type: string}, p: {type: json}}\n"
        + "resources: {s: {type: OS::Nova::Server, properties: {flavor: a, metadata: "
        + functions
        + "}}}\n"
    )
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        compile_template(Source(text, parameters=dict(parameters)))


def test_parameters_of_every_nested_stack_are_paid_for() -> None:
    declared = ", ".join(f"p{i}: {{type: string, default: a}}" for i in range(500))
    nested = HEAD + f"parameters: {{{declared}}}\n"
    source = stacks(2_000)
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        compile_template(Source(source.template.replace("{p: b}", "{}"), files={"n.yaml": nested}))


def resolved(text: str, done: int = 0) -> Work:
    """The work of resolving the functions in a text, after some that is done already."""
    node = parse(text)
    work = Work(done)
    refuse_deferred(resolve(node, Scope(ROOT, VERSIONS["wallaby"], {}, {}, work=work)))
    return work


LIST = "[" + ", ".join(f"v{i}" for i in range(4_000)) + "]"


@pytest.mark.parametrize(
    "text",
    [
        "{repeat: {template: x, for_each: {"
        + ", ".join(f"'%{i}%': [a, b, c, d]" for i in range(12))
        + "}}}",
        "{repeat: {template: '" + "%i%" * 10_000 + "', for_each: {'%i%': ['" + "x" * 900 + "']}}}",
        "a0: &a0 {list_concat: [[x], [y]]}\n"
        + "".join(f"a{i}: &a{i} {{list_concat: [*a{i - 1}, *a{i - 1}]}}\n" for i in range(1, 20)),
        "{list_concat_unique: [&l " + LIST + "," + LIST.replace("v", "w") + "]}",
        "{filter: [" + LIST + ", " + LIST.replace("v", "w") + "]}",
        "{str_replace: {template: " + "a" * 50_000 + ", params: {a: " + "b" * 1_000 + "}}}",
        "{str_replace: {template: " + "a" * 300_000 + ", params: {a: b}}}",
        "{str_split: [a, " + "a" * 300_000 + "]}",
        "{list_join: ['', [&t '" + "x" * 300_000 + "', *t, *t, *t, *t, *t, *t]]}",
        "{map_merge: [{a: &m {" + ", ".join(f"k{i}: 1" for i in range(20_000)) + "}}, "
        "{b: *m, c: *m, d: *m, e: *m, f: *m, g: *m, h: *m, i: *m, j: *m, k: *m}]}",
        "{digest: [md5, " + "x" * 2_100_000 + "]}",
    ],
    ids=range(11),
)
def test_functions_that_multiply_what_they_get_end_with_one_error(text: str) -> None:
    tracemalloc.start()
    try:
        with pytest.raises(InvalidDescription, match=r"more than|longer than|too often"):
            resolved(text, MAX_WORK - 500_000)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 300_000_000


@pytest.mark.parametrize(
    "call",
    [
        "{list_concat: [LIST, LIST]}",
        "{repeat: {template: '%i%', for_each: {'%i%': LIST}}}",
        "{list_join: [',', LIST]}",
        "{contains: [x, LIST]}",
        "{filter: [[x], LIST]}",
        "{str_replace: {template: 'a%i%', params: {'%i%': LIST}}}",
    ],
)
def test_a_function_costs_as_much_as_it_is_given(call: str) -> None:
    def steps_for(number: int) -> int:
        text = call.replace("LIST", "[" + ", ".join(f"v{i}" for i in range(number)) + "]")
        return steps(lambda: resolved(text))

    steps_for(30)  # what is made once is made
    assert steps_for(30 * FACTOR) < 1.5 * FACTOR * steps_for(30)


def expansion(template: str, **files: str) -> Source:
    """A template with files, and the environment `env` if it is among them."""
    environments = ("env",) if "env" in files else ()
    return Source(HEAD + template, files=files, environment_files=environments)


STACK_OF_TEXT = "{type: OS::Heat::Stack, properties: {template: TEXT}}"


@pytest.mark.parametrize(
    "text",
    [
        "{get_file: text}",
        "{str_replace: {template: {get_file: text}, params: {Z: '%index%'}}}",
    ],
    ids=["the same", "each another"],
)
def test_templates_in_properties_are_read_once_or_paid_for(text: str) -> None:
    member = STACK_OF_TEXT.replace("TEXT", text)
    source = expansion(
        "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: 400, resource_def: "
        + member
        + "}}}\n",
        text=HEAD + SERVER + "outputs: {z: Z, o: [" + "x, " * 5_000 + "]}\n",
    )
    if "params" not in text:
        assert len(compile_template(source).keys) == 400
        return
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        compile_template(source)


@pytest.mark.parametrize(
    "env",
    [
        "resource_registry: {My::Pod: n.yaml, resources: {g: {"
        + ", ".join(f"'*a{i}': {{A::B: OS::Heat::None}}" for i in range(1_000))
        + "}}}",
        "resource_registry: {My::Pod: n.yaml, "
        + ", ".join(f"'A::B{i}': A::C" for i in range(10_000))
        + "}",
    ],
    ids=["patterns", "types"],
)
def test_a_registry_inside_every_nested_stack_is_paid_for(env: str) -> None:
    source = expansion(
        "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: 4000,"
        " resource_def: {type: My::Pod}}}}\n",
        env=env,
        **{"n.yaml": HEAD + SERVER},
    )
    with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
        compile_template(source)


def test_the_registry_inside_a_group_is_made_once() -> None:
    entries = ", ".join(f"a{i}: {{A::B: OS::Heat::None}}" for i in range(2_000))
    source = group(2_000)
    found = compile_template(
        Source(source.template, environment=f"resource_registry: {{resources: {{{entries}}}}}")
    )
    assert len(found.keys) == 2_000


def test_families_of_types_are_removed_a_bounded_number_of_times() -> None:
    env = "resource_registry: {" + ", ".join(f"'A::B{i}*': null" for i in range(501)) + "}"
    with pytest.raises(InvalidDescription, match="more than 500 families") as caught:
        compile_template(expansion(SERVER, env=env))
    assert caught.value.path == "env.resource_registry.A::B500*"


def test_values_of_a_list_are_looked_up_among_those_allowed() -> None:
    """Not each compared with all: this would be a thousand million comparisons."""
    values = [str(i) for i in range(40_000)]
    listed = ", ".join(f"'{one}'" for one in values)
    declared = f"{{type: comma_delimited_list, constraints: [{{allowed_values: [{listed}, 1]}}]}}"
    text = HEAD + f"parameters: {{p: {declared}}}\n" + SERVER
    compile_template(Source(text, parameters={"p": ",".join(values)}))
    with pytest.raises(InvalidDescription, match=r"^'x' is not one of") as caught:
        compile_template(Source(text, parameters={"p": ",".join([*values, "x"])}))
    assert len(caught.value.message) < 1_100


@pytest.mark.nightly
def test_new_values_cost_the_memory_that_they_take() -> None:
    text = (
        HEAD
        + "parameters: {p: {type: string, default: '"
        + "a," * 50_000
        + "'}}\nresources: {s: {type: OS::Nova::Server, properties: {flavor: a, metadata: ["
        + "{str_split: [',', {get_param: p}]}, " * 40
        + "]}}}\n"
    )
    tracemalloc.start()
    try:
        with pytest.raises(InvalidDescription, match=f"more than {MAX_WORK} values"):
            compile_template(Source(text))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 250_000_000
