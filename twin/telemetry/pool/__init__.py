"""The KV block pool over a run: who holds its blocks, what is kept, what preemptions cost."""
