"""Ctrl-C and SIGTERM end a run between two steps, with a checkpoint."""

from __future__ import annotations

import signal
import threading
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """``with Interrupts() as interrupts:`` the first signal sets ``received``; a second one acts at once."""

    def __init__(self) -> None:
        self.received: int | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():  # others may not set handlers
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()

    def _handle(self, number: int, frame: FrameType | None) -> None:
        self.received = number
        self._restore()

    def _restore(self) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()


def interruption(number: int) -> BaseException:
    """What to raise after a signal: KeyboardInterrupt for Ctrl-C, else the end of the process with the shell's code."""
    return KeyboardInterrupt() if number == signal.SIGINT else SystemExit(128 + number)
