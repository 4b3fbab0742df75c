"""Templates: servers, groups of them, and nested stacks."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from tests.heat_judge.generator.expressions import Expressions, Reach
from tests.heat_judge.generator.language import VERSIONS, has, write
from tests.heat_judge.generator.parameters import Section, declare, sample

if TYPE_CHECKING:
    from random import Random

POLICIES: Final = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
NETWORKS: Final = [{"network": "n"}]
MOST_DEPTH: Final = 2


@dataclass
class Written:
    """The files of a case, as they are written."""

    random: Random
    files: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    """Names of types that an environment maps to files (or to other types)."""


@dataclass
class StackTemplate:
    """One template on its way to be written."""

    written: Written
    version: str
    depth: int
    folder: str
    reach: Reach
    say: Expressions
    resources: dict[str, Any] = field(default_factory=dict)
    groups: list[str] = field(default_factory=list)

    def add(self, name: str) -> None:
        """Add a resource with servers, or one that goes with them."""
        random = self.written.random
        kind = random.choices(
            (self.server, self.group, self.scaling, self.stack, self.placeless, self.others),
            (6, 4, 2, 3 if self.depth < MOST_DEPTH else 0, 1, 1),
        )[0]
        made = kind(name)
        if has(self.version, "conditions") and random.random() < 0.3:
            made["condition"] = self.say.condition(1)
        self.resources[name] = made

    def server(self, name: str) -> dict[str, Any]:
        """A server of Nova's."""
        random, say = self.written.random, self.say
        properties: dict[str, Any] = {"flavor": say.text(), "image": "image", "networks": NETWORKS}
        if random.random() < 0.3:
            properties["availability_zone"] = say.simple()
        if self.groups and random.random() < 0.5:
            properties["scheduler_hints"] = {"group": {"get_resource": random.choice(self.groups)}}
        if random.random() < 0.2:
            properties["metadata"] = say.mapped()
        if random.random() < 0.2:
            replaced = {"template": "a $x", "params": {"$x": say.text()}}
            properties["user_data"] = {"str_replace": replaced}
        kind = "OS::Nova::Server"
        if "My::Server" in self.written.types and random.random() < 0.3:
            kind = "My::Server"
        return {"type": kind, "properties": properties}

    def group(self, name: str) -> dict[str, Any]:
        """A resource group."""
        random = self.written.random
        properties: dict[str, Any] = {"count": self.say.whole(), "resource_def": self.member(name)}
        if random.random() < 0.2:
            properties["index_var"] = "<i>"
            if "flavor" in properties["resource_def"]["properties"]:
                properties["resource_def"]["properties"]["name"] = "n-<i>"
        if random.random() < 0.15:
            removed = random.choice((["0"], ["1", "7"], []))
            properties["removal_policies"] = [{"resource_list": removed}]
        return {"type": "OS::Heat::ResourceGroup", "properties": properties}

    def scaling(self, name: str) -> dict[str, Any]:
        """An autoscaling group."""
        random = self.written.random
        least = random.randint(0, 2)
        properties: dict[str, Any] = {
            "min_size": least,
            "max_size": random.choice((least + 2, str(least + 3))),
            "resource": self.member(name),
        }
        if random.random() < 0.5:
            properties["desired_capacity"] = random.choice((least, least + 1, str(least + 1)))
        return {"type": "OS::Heat::AutoScalingGroup", "properties": properties}

    def member(self, name: str) -> dict[str, Any]:
        """What a group has several of."""
        random = self.written.random
        choice = random.random()
        if choice < 0.4 and self.depth < MOST_DEPTH:
            return self.stack(name)
        if choice < 0.5 and self.depth < MOST_DEPTH:
            return self.group(name)
        return self.server(name)

    def stack(self, name: str) -> dict[str, Any]:
        """A nested template, by its file's name or by a type of an environment."""
        random, written = self.written.random, self.written
        file = f"{self.folder}{random.choice(('', 'sub/'))}{name}_{len(written.files)}.yaml"
        section = template(written, file, self.depth + 1)
        properties = {}
        for parameter, schema in section.schemas.items():
            if "default" in schema and random.random() < 0.5:
                continue
            constrained = "constraints" in schema
            properties[parameter] = (
                section.values[parameter] if constrained else self._argument(schema["type"])
            )
        kind = file[len(self.folder) :]
        if random.random() < 0.3:
            kind = f"My::{name.title()}::Stack{len(written.types)}"
            written.types[kind] = file
        return {"type": kind, "properties": properties}

    def _argument(self, kind: str) -> Any:
        random, say = self.written.random, self.say
        match kind:
            case "number":
                found = say.whole()
            case "boolean":
                found = random.choice((True, False, "true"))
            case "comma_delimited_list":
                found = say.listed()
            case "json" if random.random() < 0.3:
                found = sample(random, kind)
            case "json":
                inner = {"b": say.text(1), "l": say.listed(1), "n": say.whole(1)}
                found = {**say.mapped(0), "a": inner}
            case _ if self.groups and random.random() < 0.1:
                found = {"get_resource": random.choice(self.groups)}
            case _:
                found = say.text(2)
        return found

    def placeless(self, _name: str) -> dict[str, Any]:
        """A resource without a place."""
        return self.written.random.choice(
            (
                {"type": "OS::Heat::RandomString"},
                {"type": "OS::Neutron::Net", "properties": {"name": self.say.text()}},
                {"type": "OS::Heat::Value", "properties": {"value": self.say.mapped()}},
                {"type": "OS::Heat::WaitConditionHandle"},
                {"type": "OS::Zaqar::Queue", "properties": {"name": "q"}},
            )
        )

    def others(self, name: str) -> dict[str, Any]:
        """A server in another way: a chain, or an instance of EC2's."""
        random = self.written.random
        flavor = self.say.simple()
        if random.random() < 0.5:
            return {
                "type": "OS::Heat::ResourceChain",
                "properties": {
                    "resources": ["OS::Nova::Server"] * random.randint(1, 2),
                    "resource_properties": {"flavor": flavor, "image": "i", "networks": NETWORKS},
                },
            }
        config = f"{name}_config"
        if random.random() < 0.5:
            self.resources[config] = {
                "type": "AWS::AutoScaling::LaunchConfiguration",
                "properties": {"ImageId": "i", "InstanceType": flavor},
            }
            return {
                "type": "OS::Heat::InstanceGroup",
                "properties": {
                    "Size": self.say.whole(1),
                    "LaunchConfigurationName": {"get_resource": config},
                    "AvailabilityZones": ["nova"],
                },
            }
        properties = {"ImageId": "i", "InstanceType": flavor}
        return {"type": "AWS::EC2::Instance", "properties": properties}


def template(written: Written, file: str, depth: int) -> Section:
    """Write a template and those below it; gives its parameters."""
    random = written.random
    version = random.choice((*VERSIONS, *VERSIONS[-6:]))
    folder = file.rpartition("/")[0] + "/" if "/" in file else ""
    reach = Reach(version, root=depth == 0)
    section = declare(random, reach, len(written.files))
    if random.random() < 0.3:
        reach.files["note.txt"] = "m1.note"
        written.files[f"{folder}note.txt"] = "m1.note"
    # Its place among the files, before those below it; the text comes at the end.
    written.files[file] = ""
    stack = StackTemplate(written, version, depth, folder, reach, Expressions(random, reach))
    conditions: dict[str, Any] = {}
    if has(version, "conditions"):
        for i in range(random.randint(0, 3)):
            conditions[f"c{i}"] = stack.say.definition()
            reach.conditions.append(f"c{i}")
    for i in range(random.randint(0, 2)):
        stack.resources[f"g{i}"] = _server_group(random)
        stack.groups.append(f"g{i}")
    for i in range(random.randint(1, 4 if depth == 0 else 2)):
        stack.add(f"r{i}")
    written.files[file] = write(
        {
            "heat_template_version": version,
            "parameters": section.schemas,
            **({"conditions": conditions} if conditions else {}),
            "resources": stack.resources,
        }
    )
    return section


def _server_group(random: Random) -> dict[str, Any]:
    policy = random.choice(POLICIES)
    properties: dict[str, Any] = {"policies": [policy]}
    if policy == "anti-affinity" and random.random() < 0.4:
        properties["rules"] = {"max_server_per_host": random.randint(1, 3)}
    return {"type": "OS::Nova::ServerGroup", "properties": properties}
