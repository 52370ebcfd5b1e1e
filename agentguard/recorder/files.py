"""Files of whole lines: one after another by size, packed when they are closed."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

import zstandard

_TRIES: Final = 1_000
"""Names tried before a folder counts as one that takes no file."""


class Files:
    """The files of one process. Not for two threads; what fails raises, and no line is ever left half written."""

    def __init__(self, folder: Path, *, max_bytes: int, compress: bool, complain: Callable[[Exception], None]) -> None:
        self.folder = folder
        self.path: Path | None = None
        """The file that is being written; None between two."""
        self._max_bytes = max_bytes
        self._compress = compress
        self._complain = complain
        self._began = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._pid = os.getpid()
        self._count = 0
        self._fd = -1
        self._size = 0
        self._packing: list[threading.Thread] = []

    def append(self, line: bytes) -> None:
        """Write a line, whole or not at all."""
        if self._fd < 0:
            self._open()
        try:
            self._write(line)
        except OSError:
            self._undo()
            raise
        self._size += len(line)
        if self._size >= self._max_bytes:
            self._rotate()

    def close(self) -> None:
        """Close the file, pack it, and wait for those that are being packed."""
        path = self.release()
        if path is not None and self._compress:
            self._pack(path)
        for thread in self._packing:
            thread.join()

    def _open(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        for _ in range(_TRIES):
            path = self.folder / f"agentguard-{self._began}-{self._pid}-{self._count:04d}.jsonl"
            self._count += 1
            fd = _taken(path)
            if fd is not None:
                self._fd, self.path, self._size = fd, path, 0
                return
        raise FileExistsError(f"{self.folder}: no free name for another file")

    def _write(self, line: bytes) -> None:
        rest = memoryview(line)
        while rest:
            rest = rest[os.write(self._fd, rest) :]

    def _undo(self) -> None:
        """Take back the part of a line that a full disk took."""
        try:
            os.ftruncate(self._fd, self._size)
        except OSError:
            self.release()

    def _rotate(self) -> None:
        path = self.release()
        if path is None or not self._compress:
            return
        self._packing = [thread for thread in self._packing if thread.is_alive()]
        # Beside the writing: a big file takes longer to pack than a span may wait.
        thread = threading.Thread(target=self._pack, args=(path,), name="agentguard-recorder-pack", daemon=True)
        self._packing.append(thread)
        thread.start()

    def release(self) -> Path | None:
        """Let go of the file as it is; return its path, or None where there was none."""
        fd, path = self._fd, self.path
        self._fd, self.path = -1, None
        if fd >= 0:
            os.close(fd)
        return path

    def _pack(self, path: Path) -> None:
        try:
            pack(path)
        except OSError as fault:
            self._complain(fault)


def _taken(path: Path) -> int | None:
    """Open a new file; None where another recorder has or had this name: containers share pids."""
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o644)
    except FileExistsError:
        return None
    # Looked for only now: a packed file is there before its plain one goes.
    if not _packed(path).exists():
        return fd
    os.close(fd)
    path.unlink()
    return None


def _packed(path: Path) -> Path:
    return path.with_suffix(".jsonl.zst")


def pack(path: Path) -> Path:
    """Replace a file by its zstd form. A kill in between leaves the plain one, and never half a packed one."""
    packed, unfinished = _packed(path), path.with_suffix(".part")
    try:
        with open(path, "rb") as source, open(unfinished, "wb") as target:
            zstandard.ZstdCompressor(level=3).copy_stream(source, target)
        unfinished.replace(packed)
    finally:
        unfinished.unlink(missing_ok=True)
    path.unlink()
    return packed
