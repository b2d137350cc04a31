"""How a command ends: its exit code, and the message if it failed."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from collections.abc import Sequence
from io import TextIOWrapper
from typing import Any, NoReturn

import typer

from unweave.cli.app import Session, app
from unweave.cli.output import show_error, show_warning
from unweave.errors import ArgumentError, UnweaveError
from unweave.files import is_full

OK, FAILURE, USAGE, INTERRUPTED = 0, 1, 2, 130


def run(arguments: Sequence[str] | None) -> NoReturn:
    """Run a command and exit.

    The code is 0 if all went well, 1 for a failure, 2 for a mistake in the command, 130 after Ctrl-C.
    """
    session = Session()
    try:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, TextIOWrapper):  # a character that a terminal lacks is no reason to fail
                stream.reconfigure(errors="replace")
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_, **__: show_warning(str(message))
            returned = app(arguments, prog_name="unweave", standalone_mode=False, obj=session)
        sys.stdout.flush()
        code = returned if isinstance(returned, int) else OK
    except BrokenPipeError:
        code = _close_broken_pipe()
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except Exception as error:
        code = _explain(error, session.debug)
    if code == INTERRUPTED:
        print("interrupted", file=sys.stderr)
    sys.exit(code)


def _explain(error: Exception, debug: bool) -> int:
    """Print what went wrong; return the exit code for it."""
    if isinstance(error, typer.TyperException):
        return _explain_usage(error)
    if debug:
        traceback.print_exception(error)
    if isinstance(error, UnweaveError):
        show_error(str(error))
    elif isinstance(error, OSError) and error.filename is not None and error.strerror:
        show_error(f"{os.fsdecode(error.filename)}: {error.strerror}")  # no space, no permission, not there
    elif is_full(error):  # of standard output, which has no name
        show_error(f"what is printed cannot be written ({os.strerror(errno.ENOSPC)})")
    else:
        show_error(f"unexpected {type(error).__name__}: {error}")
        if not debug:
            print("run again with --debug, as in 'unweave --debug data list', to see where", file=sys.stderr)
    return USAGE if isinstance(error, ArgumentError) else FAILURE


def _explain_usage(error: Any) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":
        error.show()
    else:
        show_error(error.format_message())
        if getattr(error, "ctx", None) is not None:
            print(f"Try '{error.ctx.command_path} --help'.", file=sys.stderr)
    return int(error.exit_code)


def _close_broken_pipe() -> int:
    """Whoever read our output (``| head -1``) has enough: end without a message."""
    # Python flushes standard output once more at its end; that must not fail again.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return FAILURE
