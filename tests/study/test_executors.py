import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from unweave import processes
from unweave.errors import ArgumentError, UnweaveError
from unweave.processes import thread_variables
from unweave.study import executors
from unweave.study.executors import Local
from unweave.study.folder import begin_attempt
from unweave.study.worker import activity_file

BEGIN = "import os, sys, time, signal; from pathlib import Path; place = Path(sys.argv[1])\n"
SAY = "import socket; (place / f'{socket.gethostname()}-{os.getpid()}.json').write_text('{}')\n"


@pytest.fixture
def workers(monkeypatch):
    """Let small scripts be the workers; they are given the workers' folder. Returns those that were started."""

    def use(*scripts):
        started = []

        def start(self, folder, number):
            script = BEGIN + scripts[min(len(started), len(scripts) - 1)]
            with open(folder.workers / f"worker-{number}.log", "ab") as log:
                process = subprocess.Popen(
                    [sys.executable, "-S", "-c", script, str(folder.workers)], stdout=log, stderr=log
                )
            started.append(process)
            return process

        monkeypatch.setattr(Local, "_start", start)
        return started

    return use


def until(condition, seconds=60):
    """A watch that says that all is done when the condition holds."""
    end = time.monotonic() + seconds

    def watch():
        assert time.monotonic() < end, "waited in vain"
        return not condition()

    return watch


def test_workers_that_end_at_once_are_an_error_with_their_last_words(opened, workers):
    started = workers("print('no such module'); sys.exit(3)")
    with pytest.raises(UnweaveError, match=r"workers end at once \(exit code 3\)[^$]*no such module"):
        Local(2).run(opened(), until(lambda: False))
    assert len(started) == 2 * 3 + 1


def test_workers_that_begin_and_die_are_replaced_for_as_long_as_it_takes(opened, workers):
    """A run that takes its process down is given up by the workers, not by the one who starts them."""
    started = workers(*[SAY + "os.kill(os.getpid(), 9)"] * 12, SAY + "time.sleep(60)")
    Local(1).run(opened(), until(lambda: len(started) == 13))
    assert [process.returncode for process in started[:12]] == [-9] * 12


def test_a_worker_that_began_clears_the_count_of_those_that_did_not(opened, workers):
    bad, good = "sys.exit(1)", SAY + "sys.exit(1)"
    started = workers(bad, bad, good, bad, bad, good, bad, bad, "time.sleep(60)")
    Local(1).run(opened(), until(lambda: len(started) == 9))
    assert len(started) == 9


@pytest.mark.parametrize(
    ("end", "crashes"), [("os.kill(os.getpid(), signal.SIGKILL)", 1), ("sys.exit(130)", 0)]
)
def test_a_run_is_blamed_for_the_death_of_its_worker_but_not_for_an_interruption(
    opened, workers, end, crashes
):
    folder = opened()
    path = folder.attempts(folder.jobs[0].identity)
    begin_attempt(path, [0, 0])
    noted = "told = {'progress': [0, 0], 'crashes': 0, 'begun': [f'{socket.gethostname()}-{os.getpid()}']}\n"
    write = f"import json, socket; {noted}open({str(path)!r}, 'w').write(json.dumps(told))\n"
    started = workers(SAY + write + end, "time.sleep(60)")
    Local(1).run(folder, until(lambda: len(started) == 2))
    assert json.loads(path.read_text())["crashes"] == crashes


def test_workers_that_find_nothing_to_do_are_not_started_again(opened, workers, monkeypatch):
    monkeypatch.setattr(executors, "_POLL_SECONDS", 0.02)
    started = workers("sys.exit(0)", "time.sleep(60)")
    Local(2).run(opened(), until(lambda: len(started) == 2 and started[0].poll() == 0, 60))
    assert len(started) == 2
    started = workers("sys.exit(0)")
    with pytest.raises(UnweaveError, match="another command has changed the study"):
        Local(2).run(opened(), until(lambda: False))
    assert len(started) == 2


def test_at_the_end_and_after_an_error_no_worker_is_left(opened, workers):
    patient = (
        SAY + "signal.signal(signal.SIGINT, lambda *_: (time.sleep(0.2), sys.exit(130)))\ntime.sleep(60)"
    )
    folder = opened()
    started = workers(patient)
    Local(2).run(folder, until(lambda: len(list(folder.workers.glob("*.json"))) == 2))
    assert [process.returncode for process in started] == [130, 130]  # asked, and waited for

    started = workers("time.sleep(60)")
    with pytest.raises(KeyboardInterrupt):
        Local(2).run(folder, lambda: (_ for _ in ()).throw(KeyboardInterrupt))
    assert all(process.returncode is not None for process in started)


def test_a_worker_that_does_not_listen_is_killed(opened, workers, monkeypatch):
    monkeypatch.setattr(processes, "_STOP_SECONDS", 0.2)
    folder = opened()
    started = workers("signal.signal(signal.SIGINT, signal.SIG_IGN)\n" + SAY + "time.sleep(60)")
    Local(1).run(folder, until(lambda: len(list(folder.workers.glob("*.json"))) == 1))
    assert started[0].returncode == -signal.SIGKILL


def test_the_command_of_a_worker(opened, monkeypatch):
    called = {}

    def popen(command, **settings):
        called.update(settings, command=command)
        raise OSError("enough")

    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    folder = opened()
    with pytest.raises(OSError, match="enough"):
        Local(1, 3, "cpu").run(folder, lambda: True)
    assert called["command"][1:4] == ["-P", "-m", "unweave.study.worker"]
    assert called["command"][4:6] == [str(folder.root.resolve()), "tiny"]
    options = dict(zip(called["command"][6::2], called["command"][7::2], strict=True))
    assert options == {"--threads": "3", "--device": "cpu", "--parent": str(os.getpid())}
    assert called["start_new_session"]
    assert called["env"].items() >= thread_variables(3).items()


def test_a_device_that_is_not_there_is_told_before_any_run(opened, workers):
    started = workers("time.sleep(60)")
    with pytest.raises(ArgumentError, match="device = 'abacus'"):
        Local(1, 1, "abacus").run(opened(), lambda: True)
    assert started == []


def test_where_a_worker_says_what_it_does(tmp_path):
    assert activity_file(tmp_path, 17).parent == Path(tmp_path)
    assert activity_file(tmp_path, 17).name.endswith("-17.json")
