"""How eviction policies fare on a trace: hits by capacity, and how far from the best possible."""
