"""A WSGI filter for nova-api: a server takes a held or leased place by a scheduler hint.

It stands in nova-api's pipeline between `authtoken` and `keystonecontext` (api-paste.ini):

    [filter:moorage]
    paste.filter_factory = moorage.nova_filter:filter_factory
    endpoint = http://controller:8778/v1
    # refuse: no server without its place; ordinary: as if there were no hint
    failure_mode = refuse
    # seconds for each request to Moorage
    timeout = 10
    # only where clients shall find Moorage's server groups at nova-api, beside Nova's own
    server_groups = http://controller:8778/compute/v2.1

A request that creates a server names its place with `--hint moorage=<ensemble>`,
`<ensemble>/<role>` or `<ensemble>/<role>[i]`, with `--hint group=<the ensemble's id>`, or with the
metadata `moorage:ensemble` and `moorage:member`. The filter claims it with the caller's token, and
makes the claim's id the request's global id, which Nova passes on to Placement. If nova-api then
answers other than 202, the claim fails at once, and its place is held again. With
`--hint reservation=<id>` the global id is that of a lease's reservation.

An action on a server (migrate, evacuate, resize, unshelve) has `req-` and the server's UUID as its
global id, unless it brings one: if the server is a member, Placement answers with hosts on which
it keeps its ensemble's policies.

Only the standard library is used in nova-api, and nothing else of Moorage: nothing of it needs to
be configured where nova-api runs. `host_filter` and `host_weigher` are for
nova-scheduler.
"""

from moorage.nova_filter.middleware import filter_factory

__all__ = ["filter_factory"]
