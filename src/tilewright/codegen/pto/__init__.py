"""PTO text for the Ascend assembler, and what judges that text without trusting the compiler that wrote it.

`reader` parses the text, `check` holds it against the assembler's and the hardware's rules, `emulate` executes it on
byte arrays. These three know nothing of the compiler's own IR, so that a fault in a pass cannot hide in them.
"""
