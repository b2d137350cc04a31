"""Tables in docs/results.md that are the output of a command.

A line ``<!-- unweave … -->`` names the command, and what it prints stands below it, up to ``<!-- end -->``. A line
``<!-- when stored: unweave study … stored:NAME … -->`` becomes one as soon as results of that name are stored.
``python tests/docs/update_results.py`` writes the outputs anew, after stored results have changed.
"""

import contextlib
import io
import re
import shlex
from pathlib import Path

from unweave.cli import main
from unweave.study import stored_names

PAGE = Path(__file__).parents[2] / "docs" / "results.md"
WAITING = re.compile(r"<!-- when stored: (unweave [^\n]*?stored:([\w-]+)[^\n]*?) -->")
MARKED = re.compile(r"<!-- (unweave [^\n]*?) -->\n(.*?)\n?<!-- end -->", re.DOTALL)


def outputs(text):
    """The commands of a page with what is shown of each."""
    return [(command, shown.strip("\n")) for command, shown in MARKED.findall(text)]


def printed(command):
    """What a command prints."""
    stream = io.StringIO()
    with contextlib.redirect_stdout(stream):
        try:
            main(shlex.split(command)[1:])
        except SystemExit as ended:
            if ended.code:
                raise RuntimeError(f"{command}: failed") from ended
    return stream.getvalue().strip("\n")


def updated(text):
    """The page with every output as it is now; tables stand apart from the comments around them."""
    text = WAITING.sub(lambda found: f"<!-- {found[1]} -->" if found[2] in stored_names() else found[0], text)
    return MARKED.sub(lambda found: f"<!-- {found[1]} -->\n\n{printed(found[1])}\n\n<!-- end -->", text)
