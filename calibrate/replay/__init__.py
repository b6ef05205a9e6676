"""Real serving runs replayed by the twin, and how far off it is."""
