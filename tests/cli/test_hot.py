"""Templates in and out of the command line, with the files that go with them."""

from pathlib import Path
from typing import Any

import pytest

ROOT = """\
heat_template_version: wallaby
parameters: {size: {type: string}}
resources:
  lone: {type: My::Pod, properties: {size: {get_param: size}}}
  some: {type: OS::Heat::ResourceGroup, properties: {count: 2, resource_def: {type: lib/pod.yaml}}}
"""
POD = """\
heat_template_version: wallaby
parameters: {size: {type: string}}
resources:
  front:
    type: OS::Nova::Server
    properties: {flavor: {get_param: size}, user_data: {get_file: hello.sh}}
"""
ENVIRONMENT = """\
parameters: {size: m1.small}
parameter_defaults: {size: m1.medium}
resource_registry: {My::Pod: lib/pod.yaml}
"""


@pytest.fixture
def template(tmp_path: Path) -> Path:
    (tmp_path / "in" / "lib").mkdir(parents=True)
    (tmp_path / "out").mkdir()
    (tmp_path / "in" / "pods.yaml").write_text(ROOT)
    (tmp_path / "in" / "env.yaml").write_text(ENVIRONMENT)
    (tmp_path / "in" / "lib" / "pod.yaml").write_text(POD)
    (tmp_path / "in" / "lib" / "hello.sh").write_text("#!/bin/sh\n")
    return tmp_path / "in" / "pods.yaml"


def environment(template: Path) -> tuple[str, str]:
    return "-e", str(template.with_name("env.yaml"))


def test_what_is_emitted_needs_nothing_else(sim: Any, template: Path, tmp_path: Path) -> None:
    out = tmp_path / "out" / "placed.yaml"
    placed = sim("hot", "place", str(template), *environment(template), "--emit", str(out))
    assert placed.status == 0, placed
    assert placed.out.splitlines()[-1].endswith(f"written to {out} and 2 files beside it")
    assert (tmp_path / "out" / "lib" / "hello.sh").read_text() == "#!/bin/sh\n"
    ensemble = placed.out.splitlines()[-1].split()[1]
    again = sim.body("hot", "place", str(out), "--ensemble", ensemble)
    assert set(again["keys"]) == {"lone/front[0]", "some/front[0]", "some/front[1]"}
    assert again["template"] == out.read_text()
    assert again["files"]["lib/pod.yaml"] == (tmp_path / "out" / "lib" / "pod.yaml").read_text()
    sizes = {one["name"]: one["flavor"] for one in again["ensemble"]["members"]}
    assert sizes == {"lone/front": "m1.small", "some/front": "m1.medium"}
    assert sim("ensemble", "delete", ensemble).status == 0


@pytest.mark.parametrize("where", ["-", "placed.yaml"])
def test_nested_templates_need_a_place_of_their_own(sim: Any, template: Path, where: str) -> None:
    target = where if where == "-" else str(template.with_name(where))
    before = sim.body("ensemble", "list")["ensembles"]
    told = sim("hot", "place", str(template), *environment(template), "--emit", target)
    assert told.status == 1
    assert "beside it" in told.err or "another directory" in told.err
    assert sim.body("ensemble", "list")["ensembles"] == before, "nothing is held"
    assert template.with_name("lib").joinpath("pod.yaml").read_text() == POD


def test_a_file_that_is_missing_is_named(sim: Any, template: Path) -> None:
    template.with_name("lib").joinpath("hello.sh").unlink()
    told = sim("hot", "place", str(template), *environment(template))
    assert told.status == 1
    assert "lib/hello.sh" in told.err


def test_a_file_elsewhere_is_missed_where_a_place_hangs_on_it(sim: Any, template: Path) -> None:
    template.write_text(ROOT.replace("{get_param: size}", "{get_file: 'http://h/x'}"))
    told = sim("hot", "place", str(template), *environment(template))
    assert told.status == 1
    assert "http://h/x is missing among the files" in told.err


def test_an_environment_s_files_are_where_it_is(sim: Any, template: Path) -> None:
    moved = template.parent / "envs" / "env.yaml"
    moved.parent.mkdir()
    moved.write_text(ENVIRONMENT.replace("lib/pod.yaml", "../lib/pod.yaml"))
    told = sim("hot", "place", str(template), "-e", str(moved), "--dry-run")
    assert told.status == 0, told
    assert "lone/front[0]" in told.out


def test_a_template_is_checked_without_a_service(sim: Any, template: Path) -> None:
    told = sim("hot", "check", str(template), *environment(template))
    assert told.status == 0, told
    assert told.out.splitlines()[-1] == "OK 2 roles, 3 members, 0 policies"
    alone = sim("hot", "check", str(template))
    assert alone.status == 1
    assert "lib/pod.yaml.parameters.size" in alone.out or "size" in alone.out


def test_a_folder_is_checked_template_by_template(sim: Any, template: Path) -> None:
    folder = template.parent
    (folder / "net.yaml").write_text(
        "heat_template_version: wallaby\nresources: {n: {type: OS::Neutron::Net}}\n"
    )
    (folder / "wrong.yaml").write_text("heat_template_version: zed\n")
    told = sim("hot", "check", str(folder), "-P", "size=m1.small", "-f", "json")
    assert told.status == 1
    checks = {one["template"]: one for one in told.body["checks"]}
    assert {name: one["outcome"] for name, one in checks.items()} == {
        "lib/pod.yaml": "compiles",
        "net.yaml": "no servers",
        "pods.yaml": "refused",
        "wrong.yaml": "refused",
    }
    assert checks["wrong.yaml"]["error"]["line"] == 1
    assert "env.yaml" not in checks
