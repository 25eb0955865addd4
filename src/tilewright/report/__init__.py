"""What people read: explanations, comparisons, the reference of the operations."""
