"""Two runs, scenarios or policies side by side: what differs, and by how much."""

from twin.compare.comparison import Comparison, as_side, compare
from twin.compare.render import comparison_report

__all__ = ["Comparison", "as_side", "compare", "comparison_report"]
