"""Studies: ordered, watched, judged and exported."""
