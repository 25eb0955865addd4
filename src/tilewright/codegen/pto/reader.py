"""Reads PTO text, the subset of MLIR that the assembler takes, into plain records with line numbers.

The reader knows syntax only: which names an operation has, and their types. Meaning and legality are the business of
`check` and `emulate`. It refuses text that is not of this form with a `PTOTextError` naming line and clause.
"""

from __future__ import annotations

from tilewright.codegen.pto.forms import FORMS
from tilewright.codegen.pto.lexer import Source
from tilewright.codegen.pto.parser import Parser
from tilewright.codegen.pto.syntax import Module
from tilewright.errors import register_source


def read(text: str, name: str = "<pto>") -> Module:
    """The module spelled by `text`; `name` stands for the file in messages. Raises `PTOTextError`."""
    register_source(name, text)
    return Parser(Source(text, name), FORMS).module()
