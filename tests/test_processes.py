"""What all worker processes share."""

import os
import signal
import subprocess
import sys

import pytest

from unweave.processes import cores, end_of_log, start_worker, stop_workers


def test_a_worker_ends_with_its_parent():
    """The parent is gone before the worker looks: it must not stay behind."""
    gone = subprocess.Popen([sys.executable, "-S", "-c", ""])
    gone.wait()
    script = f"from unweave.processes import end_with; import time; end_with({gone.pid}); time.sleep(60)"
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 1


def test_an_interruption_that_an_import_swallows_comes_again():
    script = (
        "import os, signal; from unweave.processes import remember_interrupts; check = remember_interrupts()\n"
        "try:\n    os.kill(os.getpid(), signal.SIGINT)\nexcept KeyboardInterrupt:\n    pass\n"
        "try:\n    check()\nexcept KeyboardInterrupt:\n    raise SystemExit(7)\n"
    )
    assert subprocess.run([sys.executable, "-c", script], timeout=60).returncode == 7


def test_a_worker_is_started_with_pipes_or_a_log_and_stopped(tmp_path, monkeypatch):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "echoing.py").write_text(
        "import os, queue, sys\n"
        "from unweave.processes import remember_interrupts\n"
        "remember_interrupts()\n"
        "print(sys.argv[1:], os.environ['OMP_NUM_THREADS'], flush=True)\n"
        "sys.stdin.readline()\n"
        "print('last words', file=sys.stderr)\n"
    )
    (tmp_path / "queue.py").write_text("1 / 0")  # called like a module of Python
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    log = tmp_path / "log"
    with start_worker("echoing", ["a"], 3, log, has_pipes=True) as worker:
        assert worker.stdout.readline().decode().split() == ["['a',", "'--parent',", f"'{os.getpid()}']", "3"]
        assert os.getsid(worker.pid) == worker.pid  # Ctrl-C is not for it
        stop_workers([worker])
        assert worker.returncode == -signal.SIGINT or worker.returncode == 1
    with start_worker("echoing", [], 1, log) as worker:
        assert worker.wait(60) == 0
    assert end_of_log(log).splitlines()[-1] == "last words"


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="Linux only")
def test_cores_are_those_that_this_process_may_use():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cores() == 1
    finally:
        os.sched_setaffinity(0, before)
