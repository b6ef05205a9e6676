"""What is asked of the servers: trace files, synthetic loads, sessions, closed loops."""
