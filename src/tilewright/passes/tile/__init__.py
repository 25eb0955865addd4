"""Passes over tiles: from sections to instructions that the target has."""
