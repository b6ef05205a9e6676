"""What a scenario's KV layout means for memory: pages, sectors, tails, by block size and dtype."""
