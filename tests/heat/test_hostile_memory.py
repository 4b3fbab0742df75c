"""Hostile templates end with an error of the template, in a process with little memory."""

import subprocess
import sys
import textwrap

import pytest

MEMORY = 1 << 30
"""Bytes of address space; the interpreter and its libraries take about a third."""
HEAD = "heat_template_version: wallaby\n"
SERVER = "{type: OS::Nova::Server, properties: {flavor: a}}"
LAUGHS = (
    "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
    + "".join(
        f"{b}: &{b} [*{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}, *{a}]\n"
        for a, b in zip("abcdefgh", "bcdefghi", strict=True)
    )
    + HEAD
)
TEMPLATES = {
    "laughs": LAUGHS,
    "deep": HEAD + "resources: " + "[" * 100_000,
    "members": HEAD
    + "resources: {g: {type: OS::Heat::ResourceGroup, properties: {count: 1000000,"
    + f" resource_def: {SERVER}}}}}}}",
    "nesting": HEAD
    + "resources: {s: {type: OS::Nova::Server, properties: {flavor: "
    + "{list_join: ['', " * 30
    + "[a, b]"
    + "]}" * 30
    + "}}}",
    "repeat": HEAD
    + "resources: {s: {type: OS::Nova::Server, properties: {flavor: {list_join: ['',"
    + " {repeat: {template: abcde, for_each: {"
    + ", ".join(f"{one}: [{'1, ' * 99}1]" for one in "abcde")
    + "}}}]}}}}",
    "pattern": HEAD
    + "parameters: {p: {type: string, default: "
    + "a" * 40
    + "!, constraints: [{allowed_pattern: '(a|aa)+$'}]}}\n"
    + f"resources: {{s: {SERVER}}}",
}
PROGRAM = f"""
import resource, sys
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source, compile_template
text = sys.stdin.read()
resource.setrlimit(resource.RLIMIT_AS, ({MEMORY}, {MEMORY}))
try:
    compile_template(Source(text))
except InvalidDescription as error:
    print("refused:", error.message)
"""


@pytest.mark.parametrize("name", TEMPLATES)
def test_a_hostile_template_is_refused_in_little_memory(name: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROGRAM)],
        input=TEMPLATES[name],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert (done.returncode, done.stdout[:8]) == (0, "refused:"), done.stderr[-500:]
