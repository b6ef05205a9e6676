"""How close the twin comes to measured closed-loop serving rows."""
