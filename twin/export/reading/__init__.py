"""Running configurations of engines read into scenarios."""
