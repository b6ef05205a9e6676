"""KV-cache memory: blocks, their prefix cache and the order in which cached ones go."""
