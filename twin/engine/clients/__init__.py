"""Clients between the workload and the servers: they time out, give up and try again."""
