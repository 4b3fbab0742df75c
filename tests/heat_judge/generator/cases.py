"""A case of a seed: templates, environments, and the values of parameters."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any, Final

from tests.heat_judge.case import Case
from tests.heat_judge.generator.language import write
from tests.heat_judge.generator.parameters import as_option, mergeable, sample
from tests.heat_judge.generator.stacks import Written, template

if TYPE_CHECKING:
    from tests.heat_judge.generator.parameters import Section

ROOT: Final = "root.yaml"
FACADE: Final = "facade.yaml"
STRATEGIES: Final = ("merge", "overwrite", "deep_merge")
_ATTRIBUTES: Final = (
    *("name", "addresses", "networks", "first_address", "instance_name", "accessIPv4"),
    *("accessIPv6", "console_urls", "tags", "os_collect_config", "show"),
)


def make(seed: int) -> Case:
    """The case of a seed; the same for every run."""
    random = Random(seed)
    written = Written(random)
    if random.random() < 0.3:
        written.types["My::Server"] = "OS::Nova::Server"
    if random.random() < 0.1:
        written.types["OS::Nova::Server"] = FACADE
        written.files[FACADE] = _facade()
    section = template(written, ROOT, 0)
    environments, given = _environments(written, section)
    options = {
        name: as_option(section.values[name]) for name in section.needed() if name not in given
    }
    for name, schema in section.schemas.items():
        if name not in options and "constraints" not in schema and random.random() < 0.2:
            options[name] = as_option(sample(random, schema["type"]))
    return Case(
        label=f"seed {seed}",
        template=ROOT,
        files=written.files,
        environments=tuple(environments),
        parameters=options,
    )


def _environments(written: Written, section: Section) -> tuple[list[str], set[str]]:
    """Write the environments; gives their names, and the parameters they have values for."""
    random = written.random
    wanted = max(1 if written.types else 0, random.choice((0, 0, 1, 1, 2)))
    names: list[str] = []
    given: set[str] = set()
    merging = wanted > 1 and random.random() < 0.5
    strategies: dict[str, str] = {}
    for i in range(wanted):
        folder = random.choice(("", "env/"))
        content: dict[str, Any] = {}
        if i == 0 and written.types:
            content["resource_registry"] = _registry(written, folder)
        for part in ("parameters", "parameter_defaults"):
            chosen: dict[str, Any] = {}
            for name, schema in section.schemas.items():
                if random.random() < (0.6 if merging else 0.3):
                    fixed = "constraints" in schema
                    value = section.values[name] if fixed else sample(random, schema["type"])
                    canonical = mergeable(schema["type"], value)
                    if merging and canonical is not None and not fixed:
                        strategies.setdefault(name, random.choice(STRATEGIES))
                        value = canonical
                    chosen[name] = value
            if chosen:
                content[part] = chosen
                given |= chosen.keys()
        if strategies:
            content["parameter_merge_strategies"] = dict(strategies)
        if random.random() < 0.1:
            content["event_sinks"] = [{"type": "zaqar-queue", "target": "q", "ttl": 10}]
        name = f"{folder}e{i}.yaml"
        written.files[name] = write(content or {"parameters": {}})
        names.append(name)
    return names, given


def _registry(written: Written, folder: str) -> dict[str, Any]:
    random = written.random
    back = "../" if folder else ""
    registry: dict[str, Any] = {
        name: target if "::" in target else back + target for name, target in written.types.items()
    }
    if random.random() < 0.2:
        registry["OS::Zaqar::*"] = "OS::Heat::RandomString"
    choice = random.random()
    if choice < 0.1:
        registry["resources"] = {"r0": {"hooks": random.choice(("pre-create", ["pre-update"]))}}
    elif choice < 0.2:
        registry["resources"] = {"r1": {"restricted_actions": "replace"}}
    elif choice < 0.3:
        registry["resources"] = {"r1": {"OS::Zaqar::Queue": "OS::Heat::RandomString"}}
    elif choice < 0.4:
        file = "other.yaml"
        written.files[file] = _facade()
        name = random.choice(("r0", "r1", "r*"))
        registry["resources"] = {name: {"OS::Nova::Server": back + file}}
    return registry


def _facade() -> str:
    """A template in place of a server, with a server in it."""
    return write(
        {
            "heat_template_version": "2016-10-14",
            "parameters": {
                "flavor": {"type": "string"},
                "image": {"type": "string", "default": "i"},
                "name": {"type": "string", "default": "n"},
                "networks": {"type": "comma_delimited_list", "default": []},
                "availability_zone": {"type": "string", "default": "facade"},
                "scheduler_hints": {"type": "json", "default": {}},
                "metadata": {"type": "json", "default": {}},
                "user_data": {"type": "string", "default": ""},
            },
            "resources": {
                "inner": {
                    "type": "OS::Nova::Server",
                    "properties": {
                        name: {"get_param": name}
                        for name in ("flavor", "image", "availability_zone", "scheduler_hints")
                    }
                    | {"networks": [{"network": "n"}]},
                }
            },
            "outputs": {name: {"value": "x"} for name in _ATTRIBUTES},
        }
    )
