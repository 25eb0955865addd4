"""What people read: explanations, comparisons, the reference of the operations."""

from tilewright.report.explain import explain
from tilewright.report.model import Explanation

__all__ = ["Explanation", "explain"]
