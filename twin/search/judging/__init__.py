"""Whether the best trial is really better: fresh seeds, unseen traffic, intervals, explanation."""
