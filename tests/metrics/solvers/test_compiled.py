import os
import subprocess
import sys
from pathlib import Path

from unweave.metrics.solvers.compiled import compiled

KERNELS = """
from unweave.metrics.solvers.compiled import compiled


@compiled
def twice(x):
    return 2.0 * sum_of_squares(x)


@compiled
def sum_of_squares(x):
    if len(x) > 1:
        half = len(x) // 2
        return sum_of_squares(x[:half]) + sum_of_squares(x[half:])
    return square(x[0])


@compiled
def square(x):
    return x * x
"""

CALL = """
import sys
import numpy as np
import kernels
assert "numba" not in sys.modules
assert kernels.twice(np.array([3.0, 4.0])) == 50.0
assert "numba" in sys.modules
stats = kernels.twice._dispatcher.stats
print(sum(stats.cache_hits.values()), sum(stats.cache_misses.values()))
"""


def run(code, folder, **environment):
    path = os.pathsep.join([str(folder), *sys.path])
    environment = {**os.environ, "PYTHONPATH": path, **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_functions_that_call_each_other_and_themselves_are_compiled_once_for_all_processes(tmp_path):
    Path(tmp_path, "kernels.py").write_text(KERNELS)
    cache = str(tmp_path / "cache")
    assert run(CALL, tmp_path, NUMBA_CACHE_DIR=cache) == ["0", "1"]
    assert run(CALL, tmp_path, NUMBA_CACHE_DIR=cache) == ["1", "0"]


def test_a_compiled_function_keeps_name_docstring_and_python_code():
    def half(x):
        """Half of x."""
        return x / 2

    function = compiled(half)
    assert function.__name__ == "half"
    assert function.__doc__ == "Half of x."
    assert function.__wrapped__ is half


def test_importing_the_solvers_imports_no_library_that_is_slow_to_import(tmp_path):
    code = """
import importlib, pkgutil, sys
import unweave.metrics.solvers as solvers
before = set(sys.modules)
for module in pkgutil.iter_modules(solvers.__path__, "unweave.metrics.solvers."):
    importlib.import_module(module.name)
slow = {"numba", "sklearn", "torch", "pandas", "matplotlib", "scipy"}
print(*sorted(slow & (set(sys.modules) - before)))
"""
    assert run(code, tmp_path) == []
