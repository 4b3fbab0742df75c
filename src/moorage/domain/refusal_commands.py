"""What to do by hand after a refusal: the end of its sentence, with the command.

Every one has the form `; to <do it>: moorage <command>`. The command line rewrites the commands as
they are typed there (`openstack ensemble show`).
"""

from __future__ import annotations

from shlex import quote


def to_place(ensemble: str, *, what: str = "it") -> str:
    """How members without a place get one; `ensemble` is its name or id."""
    return f"; to place {what} anew: moorage decision create {quote(ensemble)} --hold 10m"


def to_boot(ensemble: str) -> str:
    """How servers are created in held places."""
    return f"; to create servers in held places: moorage ensemble boot {quote(ensemble)}"


def to_see_places(ensemble: str) -> str:
    """How the members of an ensemble and their places are shown."""
    return f"; to see its places: moorage ensemble show {quote(ensemble)}"


def to_see_claims(ensemble: str) -> str:
    """How the claims of an ensemble's members are shown."""
    return f"; to see its claims: moorage claim list {quote(ensemble)}"


def to_see_claim(claim: str) -> str:
    """How one claim is shown; its ensemble may be gone."""
    return f"; to see it: moorage claim show {quote(claim)}"


def to_see_slices(server: str) -> str:
    """How the owner of a server is shown the slices on it."""
    return f"; to see the slices on it: moorage server provider slice list {quote(server)}"


def to_see_own(kind: str) -> str:
    """How a project's own objects are listed; `kind` is `ensemble` or `lease`."""
    return f"; to see your own {kind}s: moorage {kind} list"


def to_delete_with_lease(ensemble: str) -> str:
    """How an ensemble is deleted that has a lease."""
    return f"; to cancel that, too: moorage ensemble delete {quote(ensemble)} --cascade leases"


def to_remove_member(ensemble: str, member: str) -> str:
    """The command that takes a member out of its ensemble."""
    return f"; to take it out: moorage member remove {quote(ensemble)} {quote(member)}"


def to_add_server(ensemble: str, role: str, server: str) -> str:
    """The command by which a server joins a role where it is."""
    words = f"{quote(ensemble)} --role {quote(role)} --server {quote(server)}"
    return f"; to let that server join where it is: moorage member add {words}"


def to_accept_share(share: str) -> str:
    """How the project that a role belongs to accepts it."""
    return f"; to accept it as that project: moorage share accept {quote(share)}"


def to_offer_first() -> str:
    """How an ensemble with a role of another project is described before it is placed."""
    return "; to offer it first: moorage ensemble create -f FILE --describe-only"


def to_offer_count(ensemble: str, role: str) -> str:
    """How another count of another project's role is offered."""
    words = f"{quote(ensemble)} --member {quote(f'{role}:count=N')}"
    return f"; to offer it another count: moorage ensemble set {words}"


def to_drop_policy(ensemble: str, policy: str) -> str:
    """How a policy is changed, or taken out of its ensemble."""
    first = f"moorage ensemble set {quote(ensemble)}"
    return (
        f"; to go without {policy}: {first} --remove-policy {quote(policy)}, to change it:"
        f" {first} --policy {quote(f'{policy}:FIELD=VALUE')}"
    )


def to_need_fewer(ensemble: str, role: str, count: int) -> str:
    """How a role is told that fewer of its members must be up."""
    words = f"{quote(ensemble)} --member {quote(f'{role}:min_available={count}')}"
    return f"; to let fewer be up: moorage ensemble set {words}"


def to_end_headroom(ensemble: str, role: str) -> str:
    """How the headroom of a role is given back."""
    words = f"{quote(ensemble)} --role {quote(role)} --count 0"
    return f"; to give that back first: moorage ensemble headroom {words}"


def to_end_slices(server: str) -> str:
    """How a server provider is deleted with the slices on it."""
    return f"; to end its slices: moorage server provider delete {quote(server)} --force"


def to_see_lease(lease: str) -> str:
    """How a lease is shown; `lease` is its name or id."""
    return f"; to see the lease: moorage lease show {quote(lease)}"
