"""What leases cost, against targets, beside Blazar's manager, and beside no leases at all."""
