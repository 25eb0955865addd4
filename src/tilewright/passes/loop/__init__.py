"""Passes at the loop level."""
