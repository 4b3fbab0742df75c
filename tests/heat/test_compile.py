"""Templates to descriptions: members, groups, nesting, policies, and what is refused."""

import textwrap
from pathlib import Path

import pytest
import yaml

from moorage.domain.describe import EnsembleDescription, read_ensemble
from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template

EXAMPLES = Path(__file__).parents[2] / "examples"
HEAD = "heat_template_version: wallaby\nresources:\n"
SERVER = "type: OS::Nova::Server, properties: {flavor: m1.small"


def compiled(resources: str, **files: str) -> CompiledTemplate:
    text = HEAD + textwrap.indent(textwrap.dedent(resources), "  ")
    named = {f"{name}.yaml": textwrap.dedent(file) for name, file in files.items()}
    return compile_template(Source(text, files=named))


def counts(description: EnsembleDescription) -> dict[str, int]:
    return {role.name: role.count for role in description.roles}


def policies(description: EnsembleDescription) -> dict[str, tuple[str, list[str]]]:
    return {one.name: (one.type, [str(s) for s in one.members]) for one in description.policies}


def test_the_shop_is_the_shop() -> None:
    template = compile_template(
        Source(
            (EXAMPLES / "shop-hot.yaml").read_text(encoding="utf-8"),
            (EXAMPLES / "env.yaml").read_text(encoding="utf-8"),
        )
    )
    shop = read_ensemble(yaml.safe_load((EXAMPLES / "shop.yaml").read_text(encoding="utf-8")))
    assert template.description.roles == shop.roles
    assert policies(template.description) == policies(shop)
    assert [(str(one.path), one.type) for one in template.unplaced] == [
        ("traffic", "OS::Neutron::SecurityGroup")
    ]


def test_a_server_is_a_role_of_one() -> None:
    one = compiled(f"web: {{{SERVER}}}}}")
    assert counts(one.description) == {"web": 1}
    assert {str(name): key for name, key in one.keys.items()} == {"web[0]": "web"}


def test_a_group_is_one_role() -> None:
    one = compiled(
        f"""
        web:
          type: OS::Heat::ResourceGroup
          properties: {{count: '3', resource_def: {{{SERVER}}}}}}}
        """
    )
    assert counts(one.description) == {"web": 3}
    assert {str(name): key for name, key in one.keys.items()} == {
        f"web[{n}]": f"web/{n}" for n in range(3)
    }


NESTED = """\
    heat_template_version: 2018-08-31
    parameters:
      size: {type: string}
      peers: {type: string, default: ''}
    resources:
      server:
        type: OS::Nova::Server
        properties:
          flavor: {get_param: size}
          scheduler_hints: {group: {get_param: peers}}
      side:
        type: OS::Heat::ResourceGroup
        properties: {count: 2, resource_def: {type: OS::Nova::Server, properties: {flavor: tiny}}}
    """


def test_nested_templates_in_a_group_keep_their_path() -> None:
    one = compiled(
        """
        peers: {type: OS::Nova::ServerGroup, properties: {policies: [soft-anti-affinity]}}
        pod:
          type: OS::Heat::ResourceGroup
          properties:
            count: 2
            resource_def:
              type: pod.yaml
              properties: {size: m1.small, peers: {get_resource: peers}}
        """,
        pod=NESTED,
    )
    assert counts(one.description) == {"pod/server": 2, "pod/0/side": 2, "pod/1/side": 2}
    assert "pod/1/side/0" in one.keys.values()
    assert policies(one.description) == {"peers": ("anti-affinity", ["pod/server"])}
    assert one.description.policies[0].weight == 1


def test_members_keep_their_names_when_a_group_grows() -> None:
    def keys(count: int) -> dict[str, str]:
        text = f"""
            pod:
              type: OS::Heat::ResourceGroup
              properties:
                count: {count}
                resource_def:
                  type: pod.yaml
                  properties: {{size: s, peers: {{get_resource: sg}}}}
            sg: {{type: OS::Nova::ServerGroup}}
            """
        return {str(k): v for k, v in compiled(text, pod=NESTED).keys.items()}

    assert keys(2).items() <= keys(5).items()


def test_the_index_reaches_into_properties() -> None:
    one = compiled(
        """
        pod:
          type: OS::Heat::ResourceGroup
          properties:
            count: 2
            index_var: '@@@'
            resource_def:
              type: one.yaml
              properties: {names: ['web-@@@', {deep: '@@@'}], size: m1.small}
        """,
        one="""\
            heat_template_version: wallaby
            parameters:
              names: {type: json, constraints: [{length: {min: 2}}]}
              size: {type: string}
            resources:
              s:
                type: OS::Nova::Server
                properties: {name: {get_param: [names, 0]}, flavor: {get_param: size}}
            """,
    )
    assert counts(one.description) == {"pod/s": 2}


def test_server_groups_are_policies() -> None:
    one = compiled(
        f"""
        sg:
          type: OS::Nova::ServerGroup
          properties: {{policies: [anti-affinity], rules: {{max_server_per_host: 2}}}}
        a: {{{SERVER}, scheduler_hints: {{group: {{get_resource: sg}}}}}}}}
        b: {{{SERVER}, scheduler_hints: {{group: {{get_resource: sg}}}}}}}}
        c: {{{SERVER}}}}}
        """
    )
    assert policies(one.description) == {"sg": ("anti-affinity", ["a", "b"])}
    assert one.description.policies[0].parameters == {"level": "host", "max_per_domain": 2}


def test_zones_are_fences() -> None:
    one = compiled(
        f"""
        a: {{{SERVER}, availability_zone: az1}}}}
        b: {{{SERVER}, availability_zone: az1}}}}
        c: {{{SERVER}, availability_zone: az2}}}}
        """
    )
    assert policies(one.description) == {
        "zone-az1": ("fence", ["a", "b"]),
        "zone-az2": ("fence", ["c"]),
    }


def test_policies_speak_about_where_they_stand() -> None:
    one = compiled(
        """
        sg:
          type: OS::Nova::ServerGroup
          metadata:
            moorage:
              policies:
                - {type: spread, level: rack}
                - soft-affinity
                - {name: all, type: spread, members: ['*'], level: rack}
                - {name: tagged, type: affinity, members: ['tag:fast'], level: zone}
        web:
          type: OS::Heat::ResourceGroup
          metadata: {moorage: {policies: [{name: apart, type: anti-affinity}]}}
          properties:
            count: 2
            resource_def:
              type: OS::Nova::Server
              metadata: {moorage: {tags: [fast], policies: [{type: ban, domains: [r9]}]}}
              properties: {flavor: f, scheduler_hints: {group: {get_resource: sg}}}
        db:
          type: OS::Nova::Server
          metadata:
            moorage:
              required: [CUSTOM_X]
              policies: [{name: near, type: proximity, zip: ['web[1]', db]}]
          properties: {flavor: f}
        """
    )
    assert policies(one.description) == {
        "sg": ("anti-affinity", ["web"]),
        "sg-spread": ("spread", ["web"]),
        "soft-affinity": ("affinity", ["web"]),
        "all": ("spread", ["*"]),
        "tagged": ("affinity", ["tag:fast"]),
        "apart": ("anti-affinity", ["web"]),
        "web/0/ban": ("ban", ["web[0]"]),
        "web/1/ban": ("ban", ["web[1]"]),
        "near": ("proximity", ["web[1]", "db"]),
    }
    assert one.description.roles[0].tags == {"fast"}
    assert one.description.roles[1].required == (frozenset({"CUSTOM_X"}),)


def test_policies_of_a_nested_template_speak_about_its_own_members() -> None:
    nested = NESTED.rstrip(" ") + textwrap.indent(
        textwrap.dedent("""\
          near:
            type: OS::Nova::ServerGroup
            metadata:
              moorage:
                policies: [{name: near, type: proximity, members: [server, 'side[1]'], level: rack}]
          """),
        "      ",
    )
    one = compiled(
        """
        sg: {type: OS::Nova::ServerGroup}
        pod:
          type: OS::Heat::ResourceGroup
          properties:
            count: 2
            resource_def: {type: pod.yaml, properties: {size: s, peers: {get_resource: sg}}}
        """,
        pod=nested,
    )
    assert policies(one.description) == {
        "sg": ("anti-affinity", ["pod/server"]),
        "pod/0/near": ("proximity", ["pod/server[0]", "pod/0/side[1]"]),
        "pod/1/near": ("proximity", ["pod/server[1]", "pod/1/side[1]"]),
    }


@pytest.mark.parametrize(
    ("properties", "from_volume"),
    [
        ("image: debian", False),
        ("block_device_mapping_v2: [{volume_id: v}]", True),
        ("block_device_mapping_v2: [{image: debian, volume_size: 9, boot_index: 0}]", True),
        ("image: debian, block_device_mapping_v2: [{volume_id: v, boot_index: 1}]", False),
        ("image: debian, block_device_mapping_v2: [{swap_size: 1}]", False),
        ("block_device_mapping: [{device_name: vda, volume_id: v}]", True),
        ("image: debian, block_device_mapping: [{device_name: vda, volume_id: v}]", False),
    ],
)
def test_a_root_volume_is_found_among_the_disks(properties: str, *, from_volume: bool) -> None:
    one = f"a: {{type: OS::Nova::Server, properties: {{flavor: m1.small, {properties}}}}}"
    (role,) = compiled(one).description.roles
    assert role.from_volume is from_volume


def test_an_annotation_tells_of_the_image_and_of_ports() -> None:
    (role,) = compiled(
        """
        a:
          type: OS::Nova::Server
          properties: {flavor: m1.small}
          metadata:
            moorage:
              image_properties: {hw_cpu_policy: dedicated, hw_numa_nodes: 2}
              ports:
                - name: data
                  resource_request:
                    request_groups:
                      - {id: g, resources: {NET_BW_EGR_KILOBIT_PER_SEC: 9}, required: []}
        """
    ).description.roles
    assert role.image_properties == {"hw_cpu_policy": "dedicated", "hw_numa_nodes": "2"}
    (group,) = role.groups
    assert (group.name, dict(group.resources)) == ("data", {"NET_BW_EGR_KILOBIT_PER_SEC": 9})


@pytest.mark.parametrize("size", ["count: 0", "min_size: 0, max_size: 3"])
def test_a_group_without_members_is_a_role_of_none(size: str) -> None:
    scales = "min_size" in size
    kind, definition = (
        ("AutoScalingGroup", "resource") if scales else ("ResourceGroup", "resource_def")
    )
    text = f"""
heat_template_version: 2018-08-31
resources:
  one: {{type: OS::Nova::Server, properties: {{flavor: f}}}}
  many:
    type: OS::Heat::{kind}
    metadata: {{moorage: {{policies: [{{type: anti-affinity}}]}}}}
    properties: {{{size}, {definition}: {{type: OS::Nova::Server, properties: {{flavor: f}}}}}}
"""
    found = compile_template(Source(text))
    assert {role.name: role.count for role in found.description.roles} == {"one": 1, "many": 0}
    assert list(map(str, found.keys)) == ["one[0]"]
    assert [str(one) for one in found.description.policies[0].members] == ["many"]
    assert list(found.scaling) == (["many"] if scales else [])


def test_a_list_for_a_nested_template_is_joined_by_commas_and_split_again() -> None:
    nested = f"""\
heat_template_version: wallaby
parameters:
  names: {{type: comma_delimited_list}}
resources:
  pod:
    type: OS::Heat::ResourceGroup
    properties:
      count: {{yaql: {{expression: $.data.len(), data: {{get_param: names}}}}}}
      resource_def: {{{SERVER}}}}}
"""
    one = compiled("side: {type: pod.yaml, properties: {names: ['a,b', c]}}", pod=nested)
    assert counts(one.description) == {"side/pod": 3}


def test_sides_name_roles_of_the_whole_stack() -> None:
    policy = "{name: far, type: separation, level: rack, between: [[web], [db]]}"
    pair = f"""
        web: {{{SERVER}}}, metadata: {{moorage: {{policies: [{policy}]}}}}}}
        db: {{{SERVER}}}}}
        """
    [stated] = compiled(pair).description.policies
    assert [str(one) for one in stated.members] == ["web", "db"]
    assert stated.parameters["between"] == [["web"], ["db"]]
    with pytest.raises(InvalidDescription, match="sides name roles of the whole stack"):
        compiled(pair.replace("[db]]", "[cache]]"))
    with pytest.raises(InvalidDescription, match="sides name roles of the whole stack"):
        compiled("pod: {type: pod.yaml}", pod=HEAD + textwrap.indent(textwrap.dedent(pair), "  "))


def test_a_group_says_how_many_must_be_up() -> None:
    said = "metadata: {moorage: {min_available: %d}}, "
    group = (
        "web: {type: OS::Heat::ResourceGroup, properties: {count: %d, resource_def:"
        " {type: OS::Nova::Server, " + said + "properties: {flavor: m1.small}}}}"
    )
    (role,) = compiled(group % (3, 2)).description.roles
    assert (role.count, role.min_available) == (3, 2)
    with pytest.raises(InvalidDescription, match="min_available is 0 to 3, not 4"):
        compiled(group % (3, 4))
