"""Backends: each package turns a compiled program into one form that a machine takes."""
