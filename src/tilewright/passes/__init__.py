"""Passes: each a function from a program to a program, one file each; `compiler.py` holds their order."""
