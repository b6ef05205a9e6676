"""A scenario at other loads and on other numbers of replicas: many runs of one traffic."""
