"""Certificates: what a compiled program claims of itself, and a checker that believes none of it."""
