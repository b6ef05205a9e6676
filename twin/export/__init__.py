"""Policies as files that engines and clusters accept, and running configurations as scenarios.

`twin.export.targets.EXPORTERS` is the table of what can be written; `twin.export.reading` reads.
"""
