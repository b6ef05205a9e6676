"""Kernel tables of the PyPI package `aiconfigurator-core` (Apache-2.0).

Its Parquet files lie under `systems/data/<gpu>/<family>/<engine>/<version>/`; those of its
predecessor `aiconfigurator` up to 0.10 (older engine versions) without the family. What they say
must be read with care: times are milliseconds, collective sizes elements, some keys appear twice,
some files hold several kernels, a few rows are plainly wrong. The readers here deal with each.
"""

from calibrate.sources.aiconfigurator.build import import_profile

__all__ = ["import_profile"]
