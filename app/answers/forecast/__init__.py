"""What a simulation says of a setup, how sure that is, and how long it takes."""
