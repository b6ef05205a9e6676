"""An engine core that touches a request when it joins, samples first and ends, not in between."""
