"""What people read: explanations, comparisons, the reference of the operations."""

from tilewright.report.explain import explain
from tilewright.report.model import Explanation
from tilewright.report.tiles import TilesReport, explain_tiles

__all__ = ["Explanation", "TilesReport", "explain", "explain_tiles"]
