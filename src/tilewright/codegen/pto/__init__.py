"""PTO text for the Ascend assembler: what writes it, and what judges it without trusting the compiler.

`writer` makes text and manifest of a placed program.

`reader` parses the text, `check` holds it against the assembler's and the hardware's rules, `emulate` executes it on
byte arrays. These three know nothing of the compiler's own IR, so that a fault in a pass cannot hide in them; for the
same reason nothing is imported here.
"""
