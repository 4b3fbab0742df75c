"""The services' configuration files, as an operator would write them for one machine."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tests.minicloud.layout import ENVIRONMENT, PASSWORD, ROOT, Layout

Sections = Mapping[str, Mapping[str, str | tuple[str, ...]]]
"""Section -> key -> its value, or several that are written one after the other."""

STACK_DOMAIN: Final = "heat"
STACK_ADMIN: Final = "heat-domain-admin"
"""Where Heat keeps the users of stacks, and who makes them."""
FILTERS: Final = (
    "nova.scheduler.filters.all_filters",
    "moorage.nova_filter.host_filter.HeldPlaceFilter",
)
WEIGHERS: Final = (
    "nova.scheduler.weights.all_weighers,moorage.nova_filter.host_weigher.DecidedHostWeigher"
)
ENABLED: Final = (
    "ComputeFilter,ComputeCapabilitiesFilter,ImagePropertiesFilter,ServerGroupAntiAffinityFilter,"
    "ServerGroupAffinityFilter,HeldPlaceFilter"
)


def write(path: Path, sections: Sections) -> Path:
    """One file of sections and keys."""
    lines = []
    for section, values in sections.items():
        lines.append(f"[{section}]")
        for key, value in values.items():
            several = (value,) if isinstance(value, str) else value
            lines += [f"{key} = {one}" for one in several]
    path.write_text("\n".join([*lines, ""]))
    return path


def account(layout: Layout, user: str) -> dict[str, str]:
    """How a service signs in."""
    return {
        "auth_type": "password",
        "auth_url": layout.identity,
        "username": user,
        "password": PASSWORD,
        "user_domain_id": "default",
        "project_name": "service",
        "project_domain_id": "default",
        "region_name": "RegionOne",
    }


def _authtoken(layout: Layout, user: str) -> dict[str, str]:
    section = account(layout, user) | {"www_authenticate_uri": layout.identity}
    del section["region_name"]
    return section


def keystone(layout: Layout) -> Path:
    folder = layout.folder("keystone")
    return write(
        folder / "keystone.conf",
        {
            "DEFAULT": {"log_file": str(folder / "keystone.log"), "max_token_size": "512"},
            "database": {"connection": layout.database("keystone")},
            "fernet_tokens": {"key_repository": str(folder / "fernet")},
            "fernet_receipts": {"key_repository": str(folder / "fernet")},
            "credential": {"key_repository": str(folder / "credentials")},
            "identity": {"password_hash_rounds": "4"},
            "cache": {"enabled": "false"},
        },
    )


def glance(layout: Layout) -> Path:
    folder = layout.folder("glance")
    (folder / "images").mkdir(exist_ok=True)
    return write(
        folder / "glance-api.conf",
        {
            "DEFAULT": {
                "log_file": str(folder / "glance.log"),
                "enabled_backends": "local:file",
                "transport_url": layout.broker,
                "node_staging_uri": f"file://{folder}/staging",
                "worker_self_reference_url": layout.url("glance"),
            },
            "glance_store": {"default_backend": "local"},
            "local": {"filesystem_store_datadir": str(folder / "images")},
            "os_glance_staging_store": {"filesystem_store_datadir": str(folder / "staging")},
            "os_glance_tasks_store": {"filesystem_store_datadir": str(folder / "tasks")},
            "database": {"connection": layout.database("glance")},
            "keystone_authtoken": _authtoken(layout, "glance"),
            "paste_deploy": {
                "flavor": "keystone",
                "config_file": str(ENVIRONMENT / "etc/glance/glance-api-paste.ini"),
            },
        },
    )


def neutron(layout: Layout) -> Path:
    folder = layout.folder("neutron")
    # Heat deletes the port of an AWS::EC2::Instance before the instance, as the stack's user, whom
    # Neutron refuses that by default.
    own = "rule:context_is_admin or role:service or (role:member and project_id:%(project_id)s)"
    policies = folder / "policy.yaml"
    policies.write_text(json.dumps({"delete_port": own}))
    return write(
        folder / "neutron.conf",
        {
            "DEFAULT": {
                "log_file": str(folder / "neutron.log"),
                "core_plugin": "ml2",
                "service_plugins": "qos,trunk",
                "transport_url": layout.broker,
                "api_paste_config": str(ENVIRONMENT / "etc/neutron/api-paste.ini"),
                "state_path": str(folder),
                "dhcp_agent_notification": "false",
                "notify_nova_on_port_status_changes": "true",
                "notify_nova_on_port_data_changes": "true",
            },
            "ml2": {
                "type_drivers": "vxlan",
                "project_network_types": "vxlan",
                "mechanism_drivers": "agentless",
                "extension_drivers": "port_security,qos",
            },
            "ml2_type_vxlan": {"vni_ranges": "1:1000"},
            "database": {"connection": layout.database("neutron")},
            "keystone_authtoken": _authtoken(layout, "neutron"),
            "nova": account(layout, "neutron"),
            "placement": account(layout, "neutron"),
            "oslo_concurrency": {"lock_path": str(folder / "locks")},
            "oslo_policy": {"policy_file": str(policies)},
            "quotas": {"quota_port": "-1", "quota_network": "-1", "quota_trunk": "-1"},
        },
    )


def _nova(layout: Layout, name: str) -> Sections:
    folder = layout.folder(name)
    return {
        "DEFAULT": {
            "log_file": str(folder / "nova.log"),
            "transport_url": layout.broker,
            "my_ip": "127.0.0.1",
            "state_path": str(folder),
            "report_interval": "5",
            "service_down_time": "20",
            "compute_driver": "minicloud.MinicloudDriver",
            "update_resources_interval": "10",
            "vif_plugging_is_fatal": "false",
            "vif_plugging_timeout": "5",
            "reclaim_instance_interval": "0",
            "sync_power_state_interval": "-1",
            "instance_usage_audit": "false",
            "block_device_allocate_retries": "2",
        },
        "api": {"auth_strategy": "keystone"},
        "database": {"connection": layout.database("nova_cell1")},
        "api_database": {"connection": layout.database("nova_api")},
        "keystone_authtoken": _authtoken(layout, "nova"),
        "service_user": account(layout, "nova") | {"send_service_user_token": "true"},
        "placement": account(layout, "nova") | {"connect_retries": "5", "status_code_retries": "5"},
        "neutron": account(layout, "nova"),
        "glance": account(layout, "nova"),
        "notifications": {"notification_format": "versioned"},
        "oslo_messaging_notifications": {"driver": "messagingv2"},
        "conductor": {"workers": "1"},
        "filter_scheduler": {
            "available_filters": FILTERS,
            "enabled_filters": ENABLED,
            "weight_classes": WEIGHERS,
        },
        "scheduler": {"workers": "1", "discover_hosts_in_cells_interval": "2"},
        "compute": {
            "live_migration_wait_for_vif_plug": "false",
            # How often a compute reads its providers again: what it makes of others' changes shows.
            "resource_provider_association_refresh": "15",
        },
        "quota": {"instances": "1000", "cores": "10000", "ram": "-1", "server_groups": "100"},
        "vnc": {"enabled": "false"},
        "oslo_concurrency": {"lock_path": str(folder / "locks")},
        "wsgi": {"api_paste_config": str(layout.home / "nova" / "api-paste.ini")},
        "os_vif_ovs": {"ovsdb_interface": "vsctl"},
    }


def nova(layout: Layout) -> Path:
    """For nova-api and nova-manage, with Moorage's filter in the API's pipeline."""
    folder = layout.folder("nova")
    paste = (ENVIRONMENT / "etc/nova/api-paste.ini").read_text()
    if paste.count(" authtoken keystonecontext ") != 2:
        raise AssertionError("nova's api-paste.ini has other pipelines than were expected")
    (folder / "api-paste.ini").write_text(
        paste.replace(" authtoken keystonecontext ", " authtoken moorage keystonecontext ")
        + "\n[filter:moorage]\npaste.filter_factory = moorage.nova_filter:filter_factory\n"
        f"endpoint = {layout.url('moorage', '/v1')}\nfailure_mode = refuse\ntimeout = 30\n"
    )
    return write(folder / "nova.conf", _nova(layout, "nova"))


def nova_service(layout: Layout, name: str) -> Path:
    """For the conductor and the scheduler."""
    return write(layout.folder(name) / "nova.conf", _nova(layout, name))


def compute(layout: Layout, host: str) -> Path:
    """For one nova-compute: it reaches the database through the conductor."""
    nova = _nova(layout, host)
    sections = {**nova, "DEFAULT": {**nova["DEFAULT"], "host": host}}
    del sections["database"], sections["api_database"]
    return write(layout.folder(host) / "nova.conf", sections)


def heat(
    layout: Layout, options: Mapping[str, str] | None = None, *, convergence: str = "true"
) -> Path:
    """For heat-api, heat-engine and heat-manage; with options of Moorage's plug-in."""
    folder = layout.folder("heat")
    etc = ENVIRONMENT / "etc" / "heat"
    signs_in = account(layout, "heat")
    return write(
        folder / "heat.conf",
        {
            "DEFAULT": {
                "transport_url": layout.broker,
                "num_engine_workers": "2",
                "convergence_engine": convergence,
                "region_name_for_services": "RegionOne",
                "stack_user_domain_name": STACK_DOMAIN,
                "stack_domain_admin": STACK_ADMIN,
                "stack_domain_admin_password": PASSWORD,
                "auth_encryption_key": "only-on-loopback-only-on-loopbac",
                "heat_metadata_server_url": layout.url("heat"),
                "environment_dir": str(etc / "environment.d"),
                "template_dir": str(etc / "templates"),
                "enable_stack_abandon": "true",
                "enable_stack_adopt": "true",
                "stack_scheduler_hints": "true",
                "plugin_dirs": str(ROOT / "src/moorage/heat_plugin/resource_types"),
                "periodic_interval": "10",
                "error_wait_time": "10",
                "action_retry_limit": "1",
            },
            "database": {"connection": layout.database("heat")},
            "keystone_authtoken": _authtoken(layout, "heat"),
            "trustee": {
                name: value
                for name, value in signs_in.items()
                if name in {"auth_type", "auth_url", "username", "password", "user_domain_id"}
            },
            "moorage": {"stacks": "enforce", **(options or {})},
            "clients_keystone": {"auth_uri": layout.url("keystone")},
            "paste_deploy": {"api_paste_config": str(etc / "api-paste.ini")},
            "oslo_concurrency": {"lock_path": str(folder / "locks")},
        },
    )


def moorage(layout: Layout) -> Path:
    folder = layout.folder("moorage")
    signs_in = account(layout, "moorage")
    return write(
        folder / "moorage.conf",
        {
            "DEFAULT": {
                "auth": "keystone",
                "port": str(layout.ports["moorage"]),
                "database": f"sqlite:///{folder}/moorage.db",
                "ticket_flavors": "nova",
                "move_servers": "nova",
                "build_retries": "2",
                "subscription_targets": "any",
                "nova_notifications": layout.broker,
                # Nova asks without a limit where a server has a hint of a group.
                "max_allocation_candidates": "1000",
            },
            "keystone_authtoken": _authtoken(layout, "moorage"),
            "nova": signs_in,
        },
    )
