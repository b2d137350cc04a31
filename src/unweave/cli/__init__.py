"""The command ``unweave``. One module per group of commands; none of them computes anything itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command line (default: with the arguments of this process) and exit."""
    from unweave.cli.exits import run

    run(arguments)
