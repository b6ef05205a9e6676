"""What the Hardware page asks: calibration, roofline, kernels, memory, collectives."""
