"""Measuring a GPU: what to launch, in which order, how it is timed, kept and fitted."""
