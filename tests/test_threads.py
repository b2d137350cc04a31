import os
import subprocess
import sys


def spin_count(code, **environment):
    variables = {name: value for name, value in os.environ.items() if not name.startswith(("OMP_", "GOMP_"))}
    shown = {**variables, **environment, "OMP_DISPLAY_ENV": "VERBOSE"}
    done = subprocess.run([sys.executable, "-c", code], env=shown, capture_output=True, text=True)
    return [line.strip() for line in done.stderr.splitlines() if "GOMP_SPINCOUNT" in line][:1]


def test_threads_that_wait_do_not_spin_unless_asked_to():
    if spin_count("import torch") != ["GOMP_SPINCOUNT = '300000'"]:
        return  # another runtime of threads
    assert spin_count("import unweave, torch") == ["GOMP_SPINCOUNT = '0'"]
    assert spin_count("import unweave, torch", OMP_WAIT_POLICY="ACTIVE") != ["GOMP_SPINCOUNT = '0'"]
