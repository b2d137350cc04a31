"""What ``uw.figures`` offers."""

import subprocess
import sys

import unweave as uw


def test_the_public_functions_are_listed_and_documented():
    assert {"contact_sheet", "gallery", "reconstructions", "traversals", "samples", "write_report"} <= set(
        dir(uw.figures)
    )
    for name in dir(uw.figures):
        assert getattr(uw.figures, name).__doc__, name


def test_the_room_is_imported_without_what_it_draws_with():
    code = (
        "import sys, unweave.figures; assert not {'torch', 'matplotlib', 'pandas', 'PIL'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
