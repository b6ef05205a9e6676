"""servetwin: a digital twin of LLM serving on GPUs."""

__version__ = "0.1.0"
