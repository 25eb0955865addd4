"""`with`: sections, launches of many blocks, and the names that tasks have.

Before:  with pl.spmd(4, name_hint="rows") as task:       After:  for block in pl.parallel(4):
             i = pl.tile.get_block_idx()                              x = pl.load(a, [block * 16, 0], [16, 64])
             x = pl.load(a, [i * 16, 0], [16, 64])                    ...
             ...

A task's name orders nothing by itself: what reads after what writes runs after it, and the program runs in the order
in which it is written, so that `deps=` holds already. It is checked to name tasks all the same.
"""

from __future__ import annotations

import ast

from tilewright.errors import LanguageError, Span
from tilewright.frontend import names as language
from tilewright.frontend.arithmetic import as_index
from tilewright.frontend.bindings import LanguageName, Task, as_scalar
from tilewright.frontend.branches import read_scope
from tilewright.frontend.context import Context
from tilewright.frontend.loops import Head, read_loop
from tilewright.frontend.operations import Arguments
from tilewright.frontend.options import OPTIONS, section_options
from tilewright.ir.nodes import LoopKind
from tilewright.ir.scalar import dtype_of

BLOCK = "block."
"""The variable of a launch that has none of the user's: no name that a user can write."""


def read_with(context: Context, node: ast.With) -> None:
    """`with pl.at(...)`, `with pl.cluster()`, `with pl.spmd(n)`, each with or without `as task`."""
    item = node.items[0]
    called = item.context_expr.func if isinstance(item.context_expr, ast.Call) else item.context_expr
    word = context.evaluate(called)
    path = word.path if isinstance(word, LanguageName) else ""
    if path not in OPTIONS or len(node.items) != 1 or not isinstance(item.optional_vars, ast.Name | None):
        raise LanguageError(
            "with opens a section of the language",
            span=context.span(item.context_expr),
            required="with pl.at(level=pl.Level.CORE_GROUP):, with pl.spmd(n): or with pl.cluster():",
            found=context.text(item.context_expr),
            help=f"write for i in pl.{path}(...):"
            if path in language.LOOP_WORDS
            else language.UNSUPPORTED_WORDS.get(path),
        )
    arguments = Arguments(context, item.context_expr) if isinstance(item.context_expr, ast.Call) else None
    options = section_options(path, arguments) if arguments is not None else ()
    if path == "spmd":
        _read_spmd(context, node, arguments, context.span(item.context_expr))
    else:
        if arguments is not None and arguments.positional:
            raise LanguageError(
                f"the options of pl.{path} are keywords", span=arguments.span, required=", ".join(OPTIONS[path])
            )
        read_scope(context, node, path, options)
    if item.optional_vars is not None:
        context.scope.set(item.optional_vars.id, Task(item.optional_vars.id))


def _read_spmd(context: Context, node: ast.With, arguments: Arguments | None, span: Span) -> None:
    given = [] if arguments is None else arguments.positional
    count = as_scalar(given[0][0]) if len(given) == 1 and not isinstance(given[0][0], bool | float) else None
    if count is None or not dtype_of(count).is_integer:
        raise LanguageError("pl.spmd takes the number of blocks", span=span, required="with pl.spmd(8):")
    head = Head(LoopKind.PARALLEL, (0, as_index(count), 1), 1, BLOCK, [], node.body, is_launch=True)
    read_loop(context, node, head)
