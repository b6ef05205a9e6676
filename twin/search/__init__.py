"""Search for a serving policy: what may vary, what is wanted, which trials ran, what to believe."""
