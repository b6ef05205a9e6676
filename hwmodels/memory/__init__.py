"""The memory hierarchy of a GPU: from a KV layout and an access pattern to traffic and time.

Closed forms stand beside a trace-driven simulator (`set_associative`) that holds them in tests.
Nothing here knows of requests or a clock.
"""
