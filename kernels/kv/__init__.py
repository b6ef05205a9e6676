"""The KV cache: writing into its pages, and its quantised forms."""
