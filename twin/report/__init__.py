"""From a result to figures, tables, charts and files."""
