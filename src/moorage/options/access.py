"""Settings of access: authentication, access rules, and protection of the HTTP server."""

from __future__ import annotations

from typing import Final

from moorage.domain.period import say_duration
from moorage.options.kinds import (
    Setting,
    duration,
    name,
    network,
    one_of,
    origin,
    show_truth,
    site,
    truth,
    whole,
    word,
)

_DAY: Final = 86_400

ACCESS: Final = (
    Setting(
        "auth",
        one_of("noauth2", "token-file", "keystone"),
        "noauth2",
        "STRATEGY",
        "How callers are authenticated. noauth2: the token, `user[:project]`, is taken as true;"
        " token-file: by the tokens of `token_file`; keystone: by the service of section"
        " [keystone_authtoken].",
    ),
    Setting(
        "insecure",
        truth,
        "false",
        "BOOL",
        "Allow noauth2 on an address that others can reach.",
        show=show_truth,
    ),
    Setting(
        "token_file",
        str,
        "",
        "FILE",
        "The tokens of auth token-file, written by `moorage token`. Read again when it changes.",
    ),
    Setting(
        "policy_file",
        str,
        "",
        "FILE",
        "Access rules other than the defaults, of all APIs: a YAML file of oslo.policy. Read again"
        " when it changes. Empty: the defaults.",
    ),
    Setting(
        "enforce_new_defaults",
        truth,
        "false",
        "BOOL",
        "Placement's newer default rules: POST /reshaper takes the role service; admin is not"
        " enough.",
        show=show_truth,
    ),
    Setting(
        "tenant_levels",
        word,
        ("zone",),
        "LEVEL",
        "Levels of domains that tenants may name in `fence` and `ban`. A tenant who may name racks"
        " can find out which racks there are and how full. May be repeated; values replace the"
        " default; none: no domain.",
        multi=True,
    ),
    Setting(
        "tenant_host_properties",
        word,
        ("vcpus", "memory_mb", "local_gb", "availability_zone", "hypervisor_type"),
        "PROPERTY",
        "Properties of hosts that tenants may name in requirements of Blazar's API, beside those"
        " that operators have added and not marked private. hypervisor_hostname, service_name and"
        " id, which name single hosts, are not among them. May be repeated; values replace the"
        " default.",
        multi=True,
    ),
    Setting(
        "tenant_times",
        duration,
        "1h",
        "DURATION",
        "Starts and ends of other projects' leases are shown to tenants as multiples of this:"
        " starts are rounded down, ends up.",
        show=say_duration,
    ),
    Setting(
        "session_key_file",
        str,
        "",
        "FILE",
        "The key that seals the cookies of the page's sessions: 32 random bytes in base64. With"
        " several lines the first seals, and all open. Read again when it changes. Empty: a key"
        " that is in the database.",
    ),
    Setting(
        "session_lifetime",
        duration,
        "12h",
        "DURATION",
        "How long after its login a session of the page lasts at most; never longer than its"
        " token.",
        show=say_duration,
    ),
    Setting(
        "embed_origins",
        site,
        (),
        "ORIGIN",
        "A web site that may show the page in a frame (/ui?embed=1), as"
        " https://dashboard.example.org. May be repeated; comma-separated in the environment.",
        multi=True,
    ),
    Setting(
        "tls_cert",
        str,
        "",
        "FILE",
        "Serve HTTPS with this certificate chain (PEM). Empty: plain HTTP.",
    ),
    Setting("tls_key", str, "", "FILE", "The private key of `tls_cert` (PEM)."),
    Setting(
        "trusted_proxies",
        network,
        (),
        "ADDRESS",
        "Addresses or networks of proxies whose X-Forwarded-Proto, -Host and -Prefix are believed."
        " May be repeated; comma-separated in the environment.",
        multi=True,
    ),
    Setting(
        "cors_allowed_origin",
        origin,
        (),
        "ORIGIN",
        "A web site whose pages may read answers, as https://dashboard.example.org; * for any. May"
        " be repeated; comma-separated in the environment.",
        multi=True,
    ),
    Setting(
        "cors_allow_header",
        name,
        (),
        "HEADER",
        "A request header such pages may send beyond the simple ones. May be repeated.",
        multi=True,
    ),
    Setting(
        "cors_allow_method",
        name,
        ("OPTIONS", "GET", "HEAD", "POST", "PUT", "DELETE", "TRACE", "PATCH"),
        "METHOD",
        "A method such pages may use. May be repeated; values replace the default.",
        multi=True,
    ),
    Setting(
        "cors_expose_header",
        name,
        (),
        "HEADER",
        "An answer's header such pages may read. May be repeated.",
        multi=True,
    ),
    Setting(
        "cors_allow_credentials",
        truth,
        "true",
        "BOOL",
        "Whether such pages may send cookies and the like; never together with *.",
        show=show_truth,
    ),
    Setting(
        "cors_max_age",
        whole(0, 365 * _DAY),
        "3600",
        "SECONDS",
        "How long a browser may remember the answer to a preflight.",
    ),
)
