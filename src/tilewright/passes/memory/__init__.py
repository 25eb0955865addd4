"""Passes that give tiles buffers, and buffers addresses."""
