"""Probes of the memory hierarchy, of launches, links and disks; `catalogue` has those of a GPU."""
