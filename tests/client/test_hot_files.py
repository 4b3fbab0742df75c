"""Templates on disk: nested ones are gathered, environments merged, options read."""

from pathlib import Path

import pytest

from moorage.client.hot_files import file_parameters, gather, parameters
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import Source, compile_template

EXAMPLES = Path(__file__).parents[2] / "examples"


def write(directory: Path, **files: str) -> None:
    for name, text in files.items():
        path = directory / f"{name.replace('__', '/')}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"heat_template_version: wallaby\nresources: {{{text}}}\n")


def test_nested_templates_come_along_by_their_relative_names(tmp_path: Path) -> None:
    write(
        tmp_path,
        root="a: {type: lib/pod.yaml}, b: {type: other.yaml}",
        lib__pod="s: {type: server.yaml}, t: {type: ../other.yaml}",
        lib__server="s: {type: OS::Nova::Server, properties: {flavor: f}}",
        other="s: {type: OS::Nova::Server, properties: {flavor: g}}",
    )
    text = (tmp_path / "root.yaml").read_text()
    files = gather(tmp_path / "root.yaml", text).files
    assert set(files) == {"lib/pod.yaml", "lib/server.yaml", "other.yaml"}
    compiled = compile_template(Source(text, files=files))
    assert sorted(compiled.keys.values()) == ["a/s/s", "a/t/s", "b/s"]


def test_the_registry_s_templates_come_along_from_where_the_environment_is(tmp_path: Path) -> None:
    write(tmp_path, root="a: {type: My::Pod}", envs__pod="")
    environment = tmp_path / "envs" / "env.yaml"
    environment.write_text("resource_registry: {'My::Pod': pod.yaml}")
    text = (tmp_path / "root.yaml").read_text()
    gathered = gather(tmp_path / "root.yaml", text, [environment])
    assert set(gathered.files) == {"envs/env.yaml", "envs/pod.yaml"}
    assert gathered.environments == ("envs/env.yaml",)


def test_a_file_may_be_named_by_its_url(tmp_path: Path) -> None:
    write(tmp_path, lib__pod="")
    url = (tmp_path / "lib" / "pod.yaml").as_uri()
    text = f"resources: {{a: {{type: '{url}'}}, b: {{type: 'http://h/x.yaml'}}}}"
    assert set(gather(tmp_path / "root.yaml", text).files) == {url}


def test_a_template_that_nests_in_itself_is_read_once(tmp_path: Path) -> None:
    write(tmp_path, root="a: {type: root.yaml}")
    text = (tmp_path / "root.yaml").read_text()
    assert set(gather(tmp_path / "root.yaml", text).files) == {"root.yaml"}


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write(tmp_path, root="a: {type: gone.yaml}")
    text = (tmp_path / "root.yaml").read_text()
    with pytest.raises(InvalidDescription, match=r"gone\.yaml"):
        gather(tmp_path / "root.yaml", text)


def test_a_file_that_is_no_text_is_named(tmp_path: Path) -> None:
    write(tmp_path, root="a: {type: image.yaml}")
    (tmp_path / "image.yaml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InvalidDescription, match="not UTF-8"):
        gather(tmp_path / "root.yaml", (tmp_path / "root.yaml").read_text())


def test_a_broken_environment_is_named(tmp_path: Path) -> None:
    (tmp_path / "two.yaml").write_text("parametres: {}")
    with pytest.raises(InvalidDescription) as caught:
        gather(tmp_path / "root.yaml", "resources: {}", [tmp_path / "two.yaml"])
    assert caught.value.path == "two.yaml.parametres"


def test_a_parameter_may_be_a_file(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("words\n")
    assert file_parameters([f"key={tmp_path / 'key'}"]) == {"key": "words\n"}


def test_options_are_parameters() -> None:
    assert parameters(["a=1", "b=x=y", "c="]) == {"a": "1", "b": "x=y", "c": ""}
    for wrong in ("a", "=1"):
        with pytest.raises(InvalidDescription):
            parameters([wrong])


def test_the_shop_needs_no_other_file() -> None:
    text = (EXAMPLES / "shop-hot.yaml").read_text(encoding="utf-8")
    assert gather(EXAMPLES / "shop-hot.yaml", text).files == {}


def test_the_nested_example_keeps_each_pod_in_a_rack() -> None:
    path = EXAMPLES / "nested-hot.yaml"
    text = path.read_text(encoding="utf-8")
    compiled = compile_template(Source(text, files=gather(path, text).files))
    assert {role.name: role.count for role in compiled.description.roles} == {
        "pods/front": 3,
        **{f"pods/{n}/workers": 2 for n in range(3)},
    }
    racks = {
        one.name: [str(selector) for selector in one.members]
        for one in compiled.description.policies
    }
    assert racks == {
        "fronts": ["pods/front"],
        **{f"pods/{n}/one-rack": [f"pods/front[{n}]", f"pods/{n}/workers"] for n in range(3)},
    }
