"""A cloud of real services on loopback, with Moorage as its Placement: `make minicloud`.

Keystone, Glance, Neutron, Heat, nova-api, a conductor, a scheduler and three computes on a driver
without hypervisor, in an environment of their own (`requirements/minicloud.txt`), with a MariaDB
and a RabbitMQ of their own. `inside/` is what that environment's interpreter runs; everything else
runs in ours and talks to the services as any client does.
"""
