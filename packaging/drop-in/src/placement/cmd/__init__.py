"""The commands of openstack-placement."""
