"""Trials of a search: which ran, where they are kept, who runs them. Alone in importing Optuna."""
