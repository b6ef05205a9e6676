"""Importers: from other people's and our own measurements to hardware profiles."""
