"""Keystone's database, keys, projects, users and catalogue."""

import base64
import os
import subprocess

import openstack
from openstack.connection import Connection
from openstack.identity.v3._proxy import Proxy
from openstack.identity.v3.role import Role
from tests.minicloud.config_files import STACK_ADMIN, STACK_DOMAIN
from tests.minicloud.layout import PASSWORD, Layout, inside

PEOPLE = {"demo": "demo", "neighbour": "other"}
"""Tenants' users and their projects; passwords and roles are all alike."""
_SERVICES = ("glance", "neutron", "nova", "heat", "moorage")


def prepare(layout: Layout) -> None:
    """The database, an administrator and the keys of tokens."""
    folder = layout.folder("keystone")
    for name in ("fernet", "credentials"):
        (folder / name).mkdir(mode=0o700)
        for number in ("0", "1"):  # the next one, and the one in use
            (folder / name / number).write_bytes(base64.urlsafe_b64encode(os.urandom(32)))
    manage = [inside("keystone-manage"), "--config-file", str(folder / "keystone.conf")]
    bootstrap = [
        "bootstrap",
        "--bootstrap-password",
        PASSWORD,
        "--bootstrap-region-id",
        "RegionOne",
    ]
    for interface in ("public", "internal", "admin"):
        bootstrap += [f"--bootstrap-{interface}-url", layout.identity]
    for words in (["db_sync"], bootstrap):
        subprocess.run(
            [*manage, *words], env=layout.environ, check=True, timeout=300, capture_output=True
        )


def endpoints(layout: Layout) -> dict[str, str]:
    """URLs by type of service."""
    return {
        "image": layout.url("glance"),
        "network": layout.url("neutron"),
        "compute": layout.url("nova", "/v2.1"),
        "orchestration": layout.url("heat", "/v1/%(project_id)s"),
        "placement": layout.url("moorage", "/placement"),
        "reservation": layout.url("moorage", "/reservation/v1"),
        "ensemble": layout.url("moorage", "/v1"),
    }


def connection(layout: Layout, user: str = "admin", project: str = "admin") -> Connection:
    """A user of this cloud, patient with a Placement that is being started again."""
    return openstack.connect(
        auth_url=layout.identity,
        username=user,
        password=PASSWORD,
        project_name=project,
        user_domain_id="default",
        project_domain_id="default",
        region_name="RegionOne",
        load_yaml_config=False,
        load_envvars=False,
        placement_connect_retries=5,
    )


def populate(layout: Layout) -> None:
    """Projects, users, and the catalogue."""
    with connection(layout) as cloud:
        keystone = cloud.identity
        assert isinstance(keystone, Proxy)
        roles = {one.name: one for one in keystone.roles()}
        projects = {
            name: keystone.create_project(name=name, domain_id="default")
            for name in ("service", *PEOPLE.values())
        }
        for user in (*_SERVICES, *PEOPLE):
            project = projects[PEOPLE.get(user, "service")]
            made = keystone.create_user(name=user, password=PASSWORD, domain_id="default")
            given = ("member",) if user in PEOPLE else ("admin", "service")
            for role in given:
                keystone.assign_project_role_to_user(project, made, roles[role])
        _stack_users(keystone, roles["admin"])
        for kind, url in endpoints(layout).items():
            service = keystone.create_service(type=kind, name=kind)
            for interface in ("public", "internal"):
                keystone.create_endpoint(
                    service_id=service.id, interface=interface, url=url, region_id="RegionOne"
                )


def _stack_users(keystone: Proxy, admin: Role) -> None:
    """The domain of the users that Heat makes, and who makes them."""
    domain = keystone.create_domain(name=STACK_DOMAIN)
    made = keystone.create_user(name=STACK_ADMIN, password=PASSWORD, domain_id=domain.id)
    keystone.assign_domain_role_to_user(domain, made, admin)
    keystone.create_role(name="heat_stack_user")
