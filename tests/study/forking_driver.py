"""Starts drivers of a study whose processes are all forks of this one.

They need no time to import anything, so most kills hit them at work. For each line on standard input a driver is
started; the answers are its process id at once and its exit code when it has ended.

    python forking_driver.py ROOT STUDY
"""

import os
import signal
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch

from unweave.study import worker
from unweave.study.driver import run
from unweave.study.executors import Local
from unweave.study.folder import StudyFolder, open_study
from unweave.study.perform import perform


class Forked:
    """A fork that looks like a ``subprocess.Popen``."""

    def __init__(self, do):
        self.returncode = None
        self.pid = os.fork()
        if self.pid == 0:
            try:
                code = do()
            except BaseException:
                traceback.print_exc()
                code = 1
            os._exit(code)

    def poll(self):
        if self.returncode is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self.returncode = os.waitstatus_to_exitcode(status) if pid else None
        return self.returncode

    def wait(self, timeout):
        end = time.monotonic() + timeout
        while self.poll() is None:
            if time.monotonic() > end:
                raise subprocess.TimeoutExpired("fork", timeout)
            time.sleep(0.01)

    def send_signal(self, number):
        os.kill(self.pid, number)

    def kill(self):
        self.send_signal(signal.SIGKILL)


def start(self, folder, number):
    driver = str(os.getpid())
    return Forked(lambda: worker.main([str(folder.root), folder.name, "--device", "cpu", "--parent", driver]))


def drive(root, name):
    folder = open_study(root, name)
    folder.forgive()
    run(folder, Local(2, 1, "cpu"))
    return 0


def main(root, name):
    torch.set_num_threads(1)
    Local._start = start
    folder = open_study(root, name)
    warm = StudyFolder(root / "warm", name, folder.plan)
    perform(warm, folder.jobs[0], "cpu")  # all that is loaded or compiled at first use
    for _ in sys.stdin:
        driver = Forked(lambda: drive(root, name))
        print(driver.pid, flush=True)
        driver.wait(600)
        print(driver.returncode, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
