"""Judging and fitting against measurements; runs simulations to do so."""
