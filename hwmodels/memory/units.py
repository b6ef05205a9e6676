"""The grains in which a GPU moves and finds data."""

SECTOR_BYTES = 32
"""What the L2 fetches at least (public micro-benchmark logs: mt4g, A100 and H100)."""

LINE_BYTES = 128
"""A cache line: four sectors under one tag (the same logs)."""

PAGE_BYTES = 2 * 2**20
"""Pages of device memory that cudaMalloc, cuMemCreate and PyTorch map."""

REQUEST_BYTES = 128
"""What the 32 threads of a warp ask for with one 4-byte load each."""

WARP_LANES = 32
