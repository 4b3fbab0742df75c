"""Resource types: what decides a place is read, and nothing else is."""

import textwrap
from collections.abc import Mapping

import pytest

from moorage.domain.errors import InvalidDescription
from moorage.heat.compile import CompiledTemplate, Source, compile_template

HEAD = "heat_template_version: wallaby\nresources:\n"


def compiled(resources: str, files: Mapping[str, str] | None = None) -> CompiledTemplate:
    text = HEAD + textwrap.indent(textwrap.dedent(resources), "  ")
    named = {name: textwrap.dedent(file) for name, file in (files or {}).items()}
    return compile_template(Source(text, files=named))


def counts(one: CompiledTemplate) -> dict[str, int]:
    return {role.name: role.count for role in one.description.roles}


def policies(one: CompiledTemplate) -> dict[str, tuple[str, list[str]]]:
    return {
        policy.name: (policy.type, [str(selector) for selector in policy.members])
        for policy in one.description.policies
    }


@pytest.mark.parametrize(
    "kind",
    [
        "OS::Heat::ScalingPolicy",
        "OS::Aodh::GnocchiAggregationByResourcesAlarm",
        "OS::Octavia::LoadBalancer",
        "OS::Zaqar::Queue",
        "OS::Cinder::VolumeType",
        "OS::Neutron::ProviderNet",
        "OS::Neutron::Trunk",
        "AWS::CloudFormation::WaitConditionHandle",
        "AWS::EC2::EIP",
        "Rackspace::Cloud::DNS",
        "OS::Heat::None",
    ],
)
def test_a_type_without_a_place_passes_whatever_it_says(kind: str) -> None:
    one = compiled(
        f"""
        s: {{type: OS::Nova::Server, properties: {{flavor: f}}}}
        other:
          type: {kind}
          properties: {{count: {{get_attr: [s, x]}}, wrong: {{list_join: [1]}}}}
        """
    )
    assert counts(one) == {"s": 1}
    assert [(str(other.path), other.type) for other in one.unplaced] == [("other", kind)]


def test_a_resource_that_exists_is_not_placed() -> None:
    one = compiled(
        """
        s: {type: OS::Nova::Server, properties: {flavor: f}}
        old: {type: OS::Nova::Server, external_id: some-id, properties: {flavor: f}}
        """
    )
    assert counts(one) == {"s": 1}
    assert "exists already" in one.unplaced[0].reason


def test_a_scaling_group_places_what_is_desired_and_tells_its_bounds() -> None:
    one = compiled(
        """
        web:
          type: OS::Heat::AutoScalingGroup
          properties:
            min_size: 1
            max_size: 9
            desired_capacity: 3
            resource: {type: pod.yaml}
        """,
        {
            "pod.yaml": """\
                heat_template_version: wallaby
                resources: {s: {type: OS::Nova::Server, properties: {flavor: f}}}
                """
        },
    )
    assert counts(one) == {"web/s": 3}
    group = one.scaling["web/s"]
    assert (str(group.path), group.least, group.most, group.desired) == ("web", 1, 9, 3)


INSTANCES = """\
    config:
      type: AWS::AutoScaling::LaunchConfiguration
      properties:
        ImageId: i
        InstanceType: m1.small
        NovaSchedulerHints: [{Key: group, Value: {get_resource: sg}}]
      metadata: {moorage: {tags: [front]}}
    sg: {type: OS::Nova::ServerGroup, properties: {policies: [anti-affinity]}}
    """


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [
        ("OS::Heat::InstanceGroup", "Size: 2"),
        ("AWS::AutoScaling::AutoScalingGroup", "MinSize: 2, MaxSize: 4"),
        ("AWS::AutoScaling::AutoScalingGroup", "MinSize: 1, MaxSize: 4, DesiredCapacity: 2"),
    ],
)
def test_instances_are_like_their_launch_configuration(kind: str, sizes: str) -> None:
    group = f"""\
web:
  type: {kind}
  properties:
    {{AvailabilityZones: [az1], LaunchConfigurationName: {{get_resource: config}}, {sizes}}}
"""
    one = compiled(group + textwrap.dedent(INSTANCES))
    (role,) = one.description.roles
    assert (role.name, role.count, role.flavor) == ("web", 2, "m1.small")
    assert role.tags == {"front"}
    assert policies(one) == {"sg": ("anti-affinity", ["web"])}


def test_a_chain_has_a_member_of_each_type() -> None:
    one = compiled(
        """
        chain:
          type: OS::Heat::ResourceChain
          properties:
            resources: [OS::Nova::Server, OS::Heat::RandomString, OS::Nova::Server]
            resource_properties: {flavor: f}
        """
    )
    assert list(one.keys.values()) == ["chain/0", "chain/2"]
    assert counts(one) == {"chain": 2}


def test_a_stack_in_a_property_is_placed_unless_it_is_elsewhere() -> None:
    resources = """
        s: {type: OS::Nova::Server, properties: {flavor: f}}
        here:
          type: OS::Heat::Stack
          properties: {template: {get_file: in.yaml}, parameters: {n: 2}}
        there:
          type: OS::Heat::Stack
          properties: {template: {get_file: in.yaml}, context: {region_name: r2}}
        """
    inside = """\
        heat_template_version: wallaby
        parameters: {n: {type: number}}
        resources:
          g:
            type: OS::Heat::ResourceGroup
            properties:
              count: {get_param: n}
              resource_def: {type: OS::Nova::Server, properties: {flavor: f}}
        """
    one = compiled(resources, {"in.yaml": inside})
    assert counts(one) == {"s": 1, "here/g": 2}
    assert "region" in one.unplaced[0].reason


def test_a_flavor_of_the_template_is_what_nova_makes_of_it() -> None:
    (role,) = compiled(
        """
        big:
          type: OS::Nova::Flavor
          properties:
            ram: 4096
            vcpus: '2'
            disk: 20
            extra_specs: {'trait:HW_CPU_X86_AVX2': required, 'scs:name-v2': SCS-2-4}
        s: {type: OS::Nova::Server, properties: {flavor: {get_resource: big}}}
        """
    ).description.roles
    assert role.flavor is None
    assert dict(role.resources or {}) == {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}
    assert role.required == (frozenset({"HW_CPU_X86_AVX2"}),)


def test_a_port_with_guaranteed_bandwidth_asks_for_it() -> None:
    (role,) = compiled(
        """
        net: {type: OS::Neutron::ProviderNet, properties: {physical_network: dc-1}}
        qos: {type: OS::Neutron::QoSPolicy}
        rule:
          type: OS::Neutron::QoSMinimumBandwidthRule
          properties: {policy: {get_resource: qos}, min_kbps: 1000}
        back:
          type: OS::Neutron::QoSMinimumBandwidthRule
          properties: {policy: {get_resource: qos}, min_kbps: 500, direction: ingress}
        port:
          type: OS::Neutron::Port
          properties:
            network: {get_resource: net}
            qos_policy: {get_resource: qos}
            binding:vnic_type: direct
        s:
          type: OS::Nova::Server
          properties: {flavor: f, networks: [{port: {get_resource: port}}]}
        """
    ).description.roles
    (group,) = role.groups
    assert (group.name, dict(group.resources)) == (
        "port",
        {"NET_BW_EGR_KILOBIT_PER_SEC": 1000, "NET_BW_IGR_KILOBIT_PER_SEC": 500},
    )
    assert set(group.required) == {
        frozenset({"CUSTOM_PHYSNET_DC_1"}),
        frozenset({"CUSTOM_VNIC_TYPE_DIRECT"}),
    }


def test_a_device_that_only_nova_counts_is_noted() -> None:
    one = compiled(
        """
        port: {type: OS::Neutron::Port, properties: {network: n, binding:vnic_type: direct}}
        s:
          type: OS::Nova::Server
          properties: {flavor: f, networks: [{port: {get_resource: port}}]}
        """
    )
    assert one.notes == (
        "s: only Nova can tell whether a host has a device for port port of vnic type direct",
    )


def test_hints_between_servers_are_policies() -> None:
    one = compiled(
        """
        a: {type: OS::Nova::Server, properties: {flavor: f}}
        b:
          type: OS::Nova::Server
          properties:
            flavor: f
            scheduler_hints: {different_host: [{get_resource: a}], reservation: r, mine: x}
        c:
          type: OS::Nova::Server
          properties: {flavor: f, scheduler_hints: {same_host: {get_resource: a}}}
        """
    )
    assert policies(one) == {
        "b[0]-apart-from-a[0]": ("anti-affinity", ["b", "a"]),
        "c[0]-beside-a[0]": ("affinity", ["c", "a"]),
    }
    assert set(one.notes) == {
        "b: the hint reservation is only for Nova",
        "b: the hint mine is only for Nova",
    }


def test_a_group_elsewhere_is_noted() -> None:
    one = compiled(
        """
        a: {type: OS::Nova::Server, properties: {flavor: f, scheduler_hints: {group: some-id}}}
        """
    )
    assert "some-id is not in the template" in one.notes[0]


def test_a_zone_may_name_a_host() -> None:
    one = compiled(
        """
        a: {type: OS::Nova::Server, properties: {flavor: f, availability_zone: 'az1:host7'}}
        """
    )
    assert policies(one) == {"zone-az1": ("fence", ["a"]), "host-host7": ("fence", ["a"])}


def test_members_that_differ_are_roles_of_their_own() -> None:
    one = compiled(
        """
        web:
          type: OS::Heat::ResourceGroup
          metadata: {moorage: {policies: [anti-affinity]}}
          properties:
            count: 2
            resource_def: {type: OS::Nova::Server, properties: {flavor: m1.%index%}}
        sg:
          type: OS::Nova::ServerGroup
          metadata: {moorage: {policies: [{type: ban, members: ['web[1]'], domains: [r9]}]}}
        """
    )
    assert {role.name: role.flavor for role in one.description.roles} == {
        "web/0": "m1.0",
        "web/1": "m1.1",
    }
    assert {str(member): key for member, key in one.keys.items()} == {
        "web/0[0]": "web/0",
        "web/1[0]": "web/1",
    }
    assert policies(one) == {
        "anti-affinity": ("anti-affinity", ["web/0", "web/1"]),
        "sg-ban": ("ban", ["web/1"]),
    }


def test_members_may_stand_in_different_zones() -> None:
    one = compiled(
        """
        web:
          type: OS::Heat::ResourceGroup
          properties:
            count: 2
            resource_def:
              type: OS::Nova::Server
              properties: {flavor: f, availability_zone: az%index%}
        """
    )
    assert policies(one) == {
        "zone-az0": ("fence", ["web[0]"]),
        "zone-az1": ("fence", ["web[1]"]),
    }


def test_numbers_that_the_removal_policies_name_are_left_out() -> None:
    one = compiled(
        """
        web:
          type: OS::Heat::ResourceGroup
          properties:
            count: 2
            removal_policies: [{resource_list: ['0', 2]}]
            resource_def: {type: OS::Nova::Server, properties: {flavor: f}}
        """
    )
    assert {str(member): key for member, key in one.keys.items()} == {
        "web[0]": "web/1",
        "web[1]": "web/3",
    }


def test_numbers_that_earlier_removal_policies_named_are_not_given_again() -> None:
    text = """\
heat_template_version: wallaby
resources:
  web:
    type: OS::Heat::ResourceGroup
    properties:
      count: 2
      removal_policies: [{resource_list: [5b4c]}]
      removal_policies_mode: MODE
      resource_def: {type: OS::Nova::Server, properties: {flavor: f}}
"""
    known = {
        "removed": {"web": frozenset({"1"}), "db": frozenset({"2", "3"})},
        "members": {"5b4c": "web/3", "77aa": "db/0"},
    }
    for mode, paths in (("append", ["web/0", "web/2"]), ("update", ["web/0", "web/1"])):
        source = Source(text.replace("MODE", mode), **known)  # type: ignore[arg-type] # two fields
        assert list(compile_template(source).keys.values()) == paths
    # An id that is a member's names that member.
    source = Source(text.replace("MODE", "update"), members={"5b4c": "web/0"})
    assert list(compile_template(source).keys.values()) == ["web/1", "web/2"]


CFN = """\
AWSTemplateFormatVersion: '2010-09-09'
Parameters:
  Size: {Type: Number, Default: '2', MinValue: 1, MaxValue: 5}
  Secret: {Type: String, NoEcho: true, Default: word, AllowedPattern: '[a-z]+'}
Mappings: {Flavors: {small: {name: m1.small}}}
Conditions: {Big: {'Fn::Equals': [{Ref: Size}, 3]}}
Resources:
  Config:
    Type: AWS::AutoScaling::LaunchConfiguration
    Properties: {ImageId: i, InstanceType: {'Fn::FindInMap': [Flavors, small, name]}}
  Web:
    Type: AWS::AutoScaling::AutoScalingGroup
    DependsOn: Config
    Properties:
      AvailabilityZones: {'Fn::GetAZs': ''}
      LaunchConfigurationName: {Ref: Config}
      MinSize: {Ref: Size}
      MaxSize: 5
  Extra: {Type: AWS::EC2::Instance, Condition: Big, Properties: {ImageId: i, InstanceType: f}}
  Alone: {Type: AWS::EC2::Instance, Properties: {ImageId: i, InstanceType: f}}
"""


def test_a_template_of_cloudformation_is_read() -> None:
    one = compile_template(Source(CFN))
    assert {role.name: (role.count, role.flavor) for role in one.description.roles} == {
        "Web": (2, "m1.small"),
        "Alone": (1, "f"),
    }
    with pytest.raises(InvalidDescription, match="out of range") as caught:
        compile_template(Source(CFN, parameters={"Size": 9}))
    assert caught.value.line == 3


def test_headroom_is_kept_for_what_a_scaling_group_may_still_get() -> None:
    text = """
        web:
          type: OS::Heat::AutoScalingGroup
          metadata: {{moorage: {{headroom: {headroom}, scaling: largest}}}}
          properties:
            min_size: {size}
            max_size: 5
            resource: {{type: OS::Nova::Server, properties: {{flavor: f}}}}
        """
    assert compiled(text.format(headroom=3, size=2)).headroom == {"web": 3}
    for headroom, size in ((4, 2), (1, 0), ("x", 2)):
        with pytest.raises(InvalidDescription) as caught:
            compiled(text.format(headroom=headroom, size=size))
        assert caught.value.path == "resources.web.metadata.moorage.headroom"


def test_a_reference_is_not_empty_whatever_it_is() -> None:
    one = compiled(
        """
        sg: {type: OS::Nova::ServerGroup}
        a: {type: pod.yaml, properties: {group: {get_resource: sg}}}
        b: {type: pod.yaml}
        """,
        {
            "pod.yaml": """\
                heat_template_version: wallaby
                parameters: {group: {type: string, default: ''}}
                conditions: {grouped: {not: {equals: [{get_param: group}, '']}}}
                resources:
                  s:
                    type: OS::Nova::Server
                    properties:
                      flavor: f
                      scheduler_hints: {if: [grouped, {group: {get_param: group}}, {}]}
                """
        },
    )
    assert policies(one) == {"sg": ("anti-affinity", ["a/s"])}


def test_a_group_without_members_keeps_the_roles_that_it_may_get() -> None:
    one = compiled(
        """
        s: {type: OS::Nova::Server, properties: {flavor: f}}
        pods:
          type: OS::Heat::ResourceGroup
          properties: {count: 0, resource_def: {type: pod.yaml}}
        """,
        {
            "pod.yaml": """\
                heat_template_version: wallaby
                resources:
                  sg: {type: OS::Nova::ServerGroup}
                  in:
                    type: OS::Nova::Server
                    properties: {flavor: f, scheduler_hints: {group: {get_resource: sg}}}
                """
        },
    )
    assert counts(one) == {"s": 1, "pods/in": 0}
    assert list(one.keys.values()) == ["s"]


def test_what_many_servers_look_at_is_bounded() -> None:
    rules = "".join(
        f"r{n}:\n  type: OS::Neutron::QoSMinimumBandwidthRule\n"
        "  properties: {policy: {get_resource: q}, min_kbps: 1}\n"
        for n in range(500)
    )
    ports = "".join(
        f"p{n}: {{type: OS::Neutron::Port, properties: {{qos_policy: {{get_resource: q}}}}}}\n"
        for n in range(50)
    )
    named = ", ".join(f"{{port: {{get_resource: p{n}}}}}" for n in range(50))
    group = (
        "g:\n  type: OS::Heat::ResourceGroup\n  properties:\n    count: 5000\n    resource_def:\n"
        f"      type: OS::Nova::Server\n      properties: {{flavor: f, networks: [{named}]}}\n"
    )
    with pytest.raises(InvalidDescription, match="expands to more"):
        compiled(f"q: {{type: OS::Neutron::QoSPolicy}}\n{rules}{ports}{group}")


@pytest.mark.parametrize(
    ("written", "size"), [("2", 2), ("2.0", 2), ("2.7", 2), ("' 2 '", 2), ("true", 1)]
)
def test_a_size_is_the_whole_number_that_heat_makes_of_it(written: str, size: int) -> None:
    member = "{type: OS::Nova::Server, properties: {flavor: f}}"
    text = (
        "heat_template_version: wallaby\nresources:\n"
        f"  r: {{type: OS::Heat::ResourceGroup, properties: {{count: {written},"
        f" resource_def: {member}}}}}\n"
        f"  a: {{type: OS::Heat::AutoScalingGroup, properties: {{min_size: {written},"
        f" max_size: 9.9, resource: {member}}}}}\n"
    )
    found = compile_template(Source(text))
    assert {role.name: role.count for role in found.description.roles} == {"r": size, "a": size}
    with pytest.raises(InvalidDescription, match="count must be between"):
        compile_template(Source(text.replace(f"count: {written}", "count: '2.0'")))
