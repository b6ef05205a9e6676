"""Steps of a simulation run on a GPU, and how far their predicted times are off."""
