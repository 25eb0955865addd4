"""The intermediate representation: immutable, SSA, structured. Knows nothing of syntax, targets or passes."""
