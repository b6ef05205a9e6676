"""Whether a setup fits, and how many requests and GPUs go with it."""
