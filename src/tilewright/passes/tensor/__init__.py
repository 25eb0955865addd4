"""Passes over tensors in DDR: from what the user wrote to sections."""
