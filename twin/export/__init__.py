"""A policy as files that a serving engine accepts; one file an engine."""
