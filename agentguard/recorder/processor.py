"""The span processor of the recorder. This and `agentguard.usage` are the modules that use the OpenTelemetry SDK.

One file per process, in the order in which spans ended. Nothing is dropped while the disk takes it: the queue is
bounded, and an agent that ends spans faster than they can be written waits. A kill costs what ended in the last tenth
of a second and at most a torn last line.
"""

from __future__ import annotations

import contextlib
import functools
import os
import threading
import time
import weakref
from collections import deque
from multiprocessing import util
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor

from agentguard.log import logger
from agentguard.recorder.files import Files
from agentguard.recorder.otlp_json import Clean, encoded
from agentguard.redaction import REDACTED, Redaction

_MOST_WAITING: Final = 8_192
"""Spans in the queue beyond which ending one more waits."""
_MOST_IN_A_LINE: Final = 256
_PATIENCE: Final = 30.0
"""Seconds that ending a span waits for a writer that does not move."""
_SHORT: Final = 64


class Recorder(SpanProcessor):
    """A span processor that writes files. Never raises into the agent; what goes wrong is one loud line in the log."""

    def __init__(
        self,
        folder: str | Path,
        *,
        redaction: Redaction | None,
        max_bytes: int,
        compress: bool,
        flush_seconds: float,
    ) -> None:
        self.folder = Path(folder)
        self.lost = 0
        """Spans that could not be written, because the disk or the folder refused."""
        self._clean = None if redaction is None else _cleaner(redaction)
        self._max_bytes = max_bytes
        self._compress = compress
        self._flush_seconds = flush_seconds
        self._failing = False
        self._closed = False
        self._begin()
        if hasattr(os, "register_at_fork"):  # not on Windows, which does not fork
            me: weakref.ref[Recorder] = weakref.ref(self)
            os.register_at_fork(after_in_child=lambda: _begin_in_child(me))
        util.register_after_fork(self, Recorder._end_with_process)
        self._end_with_process()

    # --- what the SDK calls ------------------------------------------------------------------------------------------

    def on_end(self, span: ReadableSpan) -> None:
        """Queue a span; wait when too many are waiting already."""
        context = span.context
        if self._closed or context is None or not context.trace_flags.sampled:
            return
        self._waiting.append(span)
        if not self._stirred:
            self._stir()
        if len(self._waiting) >= _MOST_WAITING:
            self._wait_for_room()

    def shutdown(self) -> None:
        """Write what is waiting and close the file."""
        self.close()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        """Write what is waiting; return whether that was done in time."""
        return self.flush(timeout_millis / 1e3)

    # --- what users call ---------------------------------------------------------------------------------------------

    @property
    def path(self) -> Path | None:
        """The file that is being written; None before the first span, and after the last."""
        return self._files.path

    def flush(self, seconds: float = 30.0) -> bool:
        """Write every span that has ended; return whether that was done within so many seconds."""
        thread, done, until = self._thread, threading.Event(), time.monotonic() + seconds
        self._asked.append(done)
        self._hurry.set()
        self._wake.set()
        while thread is not None and thread.is_alive() and time.monotonic() < until:
            if done.wait(min(0.1, seconds)):
                return True
        return not self._waiting

    def close(self) -> None:
        """Write what is waiting and close the file. Spans that end later are not recorded."""
        if self._closed:
            return
        self._closed = True
        if self._thread is not None:
            self._hurry.set()
            self._wake.set()
            self._thread.join(timeout=_PATIENCE)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- beginnings and ends -----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """Start afresh, in a new process too: spans that were waiting belong to the parent, which writes them."""
        self._waiting: deque[ReadableSpan] = deque()
        self._asked: deque[threading.Event] = deque()
        self._wake = threading.Event()
        self._hurry = threading.Event()
        self._room = threading.Condition()
        self._starting = threading.Lock()
        self._stirred = False
        self._thread: threading.Thread | None = None
        self._files = Files(
            self.folder, max_bytes=self._max_bytes, compress=self._compress, complain=lambda fault: self._fail(0, fault)
        )

    def begin_in_child(self) -> None:
        """Start afresh in a forked process; called by the interpreter."""
        if not self._closed:
            self._files.release()
            self._begin()

    def _end_with_process(self) -> None:
        # Children that multiprocessing forks leave without running what atexit holds, but run these.
        util.Finalize(self, _close, args=(weakref.ref(self),), exitpriority=100)

    def _stir(self) -> None:
        """Wake the writing thread, which sleeps while there is nothing to write."""
        self._stirred = True
        try:
            if self._thread is None:
                self._start()
        except RuntimeError as fault:  # the interpreter is shutting down, or the process has no thread left to give
            self._fail(len(self._waiting), fault)
            self._waiting.clear()
        self._wake.set()

    def _start(self) -> None:
        with self._starting:
            if self._thread is None:
                thread = threading.Thread(target=self._work, name="agentguard-recorder", daemon=True)
                thread.start()
                self._thread = thread

    def _wait_for_room(self) -> None:
        with self._room:
            self._hurry.set()
            self._room.wait_for(lambda: self._closed or len(self._waiting) < _MOST_WAITING, timeout=_PATIENCE)

    # --- the writing thread ------------------------------------------------------------------------------------------

    def _work(self) -> None:
        while not self._closed or self._waiting:
            self._wake.wait()
            if not self._closed:
                self._hurry.wait(self._flush_seconds)
            self._hurry.clear()
            # In this order: a span that ends meanwhile is either drained now or wakes this thread again.
            self._wake.clear()
            self._stirred = False
            self._answer()
        self._files.close()

    def _answer(self) -> None:
        asked = [self._asked.popleft() for _ in range(len(self._asked))]
        while self._waiting:
            self._write([self._waiting.popleft() for _ in range(min(len(self._waiting), _MOST_IN_A_LINE))])
            with self._room:
                self._room.notify_all()
        for done in asked:
            done.set()

    def _write(self, spans: list[ReadableSpan]) -> None:
        try:
            line = encoded(spans, self._clean)
        except Exception as fault:
            self._write_apart(spans, fault)
            return
        try:
            self._files.append(line)
        except Exception as fault:
            self._fail(len(spans), fault)
            return
        if self._failing:
            self._failing = False
            with contextlib.suppress(Exception):
                logger().warning("agentguard.recorder_recovered", folder=str(self.folder), lost=self.lost)

    def _write_apart(self, spans: list[ReadableSpan], fault: Exception) -> None:
        """Lose no more than the span that cannot be encoded."""
        if len(spans) == 1:
            self._fail(1, fault)
            return
        for span in spans:
            self._write([span])

    def _fail(self, spans: int, fault: Exception) -> None:
        """Say it once, and again only after writing worked in between."""
        self.lost += spans
        if not self._failing:
            self._failing = True
            # The host's own log may fail, and this thread must go on.
            with contextlib.suppress(Exception):
                logger().error(
                    "agentguard.recorder_failed", folder=str(self.folder), error=f"{type(fault).__name__}: {fault}"
                )


def _cleaner(redaction: Redaction) -> Clean:
    def long(key: str, text: str) -> str:
        return REDACTED if redaction.is_secret(key) else redaction.text(text)

    # Most short texts come again and again: names, models, providers.
    short = functools.lru_cache(maxsize=8_192)(long)
    return lambda key, text: short(key, text) if len(text) <= _SHORT else long(key, text)


def _close(recorder: weakref.ref[Recorder]) -> None:
    here = recorder()
    if here is not None:
        here.close()


def _begin_in_child(recorder: weakref.ref[Recorder]) -> None:
    here = recorder()
    if here is not None:
        here.begin_in_child()
