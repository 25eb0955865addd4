"""The command ``tilewright``: run, compile, explain and take apart kernels from a shell.

What a user got wrong is said with their line and carets and exit code 1, never with a traceback of ours. Typer and rich
are imported when a command runs, not when `tilewright` is imported.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path
from types import TracebackType

from tilewright.errors import TilewrightError

FAILED = 1
INTERRUPTED = 130


def main() -> None:
    """Runs the command line of this process, and exits."""
    sys.excepthook = show_exception
    try:
        from tilewright.cli.app import app

        app(prog_name="tilewright")
    except TilewrightError as error:
        _show(error)
        sys.exit(FAILED)
    except BrokenPipeError:
        # Whoever read our output has seen enough. Python would complain again when it flushes at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _show(error: TilewrightError) -> None:
    from tilewright.cli.output import show_error

    sys.stdout.flush()
    show_error(error)


def show_exception(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """What a user's file raised, as its user would see it: from their first line on. An exception in which no line of
    theirs occurs is a fault of ours, and is shown whole."""
    own = Path(__file__).parents[1]
    started = Path(sys.argv[0]).resolve()
    foreign = ("importlib", "site-packages")
    frames = traceback.extract_tb(trace)
    theirs = [
        index
        for index, frame in enumerate(frames)
        if Path(frame.filename).is_file()
        and own not in Path(frame.filename).resolve().parents
        and Path(frame.filename).resolve() != started
        and not any(part in frame.filename for part in foreign)
    ]
    if theirs:
        frames = traceback.StackSummary.from_list(frames[theirs[0] :])
    print("Traceback (most recent call last):", file=sys.stderr)
    print("".join([*frames.format(), *traceback.format_exception_only(kind, error)]), end="", file=sys.stderr)
    if not theirs:
        print("This is a fault of Tilewright, not of your program.", file=sys.stderr)
