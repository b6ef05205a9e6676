"""Matrix products: dense, fp8, weight-only, and the library's beside them."""
