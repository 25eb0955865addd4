"""The steps of `legalize_layouts`, one module each."""
