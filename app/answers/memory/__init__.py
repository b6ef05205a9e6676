"""The block pool over a run, and eviction policies beside each other."""
