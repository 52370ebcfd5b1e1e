"""Files, folders, globs, standard input and remote addresses as streams of lines, unpacked on the way."""

from __future__ import annotations

import glob
import gzip
import io
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, Final, cast

import zstandard

from agentguard.errors import IntegrationMissing, TraceError

STDIN: Final = "-"
LONGEST_LINE: Final = 256 * 2**20
"""Bytes of one line beyond which it is skipped; a decompression bomb without line ends stops here too."""
_CHUNK: Final = 2**20
_ZSTD, _GZIP, _XZ, _ZIP = b"\x28\xb5\x2f\xfd", b"\x1f\x8b", b"\xfd7zXZ\x00", b"PK\x03\x04"
_ENDINGS: Final = (".json", ".jsonl", ".ndjson", ".log", ".pb", ".eval", ".parquet")
_PACKED: Final = (".gz", ".zst", ".xz")


def expanded(path: str) -> list[str]:
    """Return the files that a path means, sorted: itself, those of a folder and its folders, or a glob's.

    A path that means no file is a TraceError.
    """
    if path == STDIN or "://" in path:
        return [path]
    if Path(path).is_dir():
        found = sorted(str(p) for p in Path(path).rglob("*") if p.is_file() and _is_trace(p))
        if not found:
            raise TraceError(path, None, f"no trace files in this folder; looked for {', '.join(_ENDINGS)}")
        return found
    if Path(path).exists():
        return [path]
    found = sorted(name for name in glob.glob(path, recursive=True) if Path(name).is_file())
    if not found:
        raise TraceError(path, None, "no such file, folder or pattern")
    return found


def _is_trace(path: Path) -> bool:
    name = path.name
    for packed in _PACKED:
        name = name.removesuffix(packed)
    return name.endswith(_ENDINGS) and not path.name.startswith(".")


class _Unpacked(io.BufferedReader):
    """Unpacked bytes; closing them closes the packed ones too, which the standard library leaves open."""

    def __init__(self, unpacked: Any, packed: IO[bytes]) -> None:
        super().__init__(unpacked, _CHUNK)
        self._packed = packed

    def close(self) -> None:
        """Close both."""
        super().close()
        self._packed.close()


def opened(path: str) -> IO[bytes]:
    """Return a file's bytes, unpacked by what they begin with, whatever the file is called.

    A file that cannot be opened is a TraceError; packed data that turn out torn raise OSError, EOFError or a
    decompressor's error while they are read.
    """
    raw: io.BufferedReader = _raw(path)
    head = raw.peek(6)[:6]
    if head.startswith(_ZSTD):
        return _Unpacked(_Zstd(raw), raw)
    if head.startswith(_GZIP):
        return _Unpacked(gzip.GzipFile(fileobj=raw), raw)
    if head.startswith(_XZ):
        return _Unpacked(lzma.LZMAFile(raw), raw)
    return raw


class _Zstd(io.RawIOBase):
    """Unpacked zstd frames. The library's own reader takes a frame that was cut off for the end of the data."""

    def __init__(self, packed: IO[bytes]) -> None:
        self._packed = packed
        self._frame = zstandard.ZstdDecompressor().decompressobj()
        self._begun = False
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = (self._frame.unused_data if self._frame.eof else b"") or self._packed.read(_PACKED_CHUNK)
            if not packed:
                if self._begun and not self._frame.eof:
                    raise EOFError("zstd data end inside a frame")
                return 0
            if self._frame.eof:
                self._frame = zstandard.ZstdDecompressor().decompressobj()
            self._begun = True
            self._ready = memoryview(self._frame.decompress(packed))
        count = min(len(buffer), len(self._ready))
        buffer[:count] = self._ready[:count]
        self._ready = self._ready[count:]
        return count


_PACKED_CHUNK: Final = 1024
"""Of zstd at a time: what a bomb makes of it is still no more than some 30 MB."""


def is_packed(path: str) -> bool:
    """Whether a file begins as packed data do."""
    with open(path, "rb") as file:
        return file.read(6).startswith((_ZSTD, _GZIP, _XZ, _ZIP))


UNPACKING_FAULTS: Final = (OSError, EOFError, zlib.error, lzma.LZMAError, zstandard.ZstdError)
"""What reading torn or damaged packed data raises."""


def _raw(path: str) -> Any:
    try:
        if path == STDIN:
            return io.BufferedReader(cast("io.RawIOBase", sys.stdin.buffer), _CHUNK)
        if "://" in path:
            return io.BufferedReader(_remote(path), _CHUNK)
        return open(path, "rb", buffering=_CHUNK)
    except OSError as error:
        raise TraceError(path, None, f"cannot be opened: {error.strerror or error}") from error


def _remote(path: str) -> Any:
    try:
        import fsspec  # type: ignore[import-untyped]
    except ImportError:
        raise IntegrationMissing("fsspec", "score") from None
    try:
        return cast("Any", fsspec).open(path, "rb").open()
    except (ImportError, ValueError) as error:
        raise TraceError(path, None, f"cannot be opened: {error}") from error


def lines(stream: IO[bytes]) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number of each line, from 1, and its bytes without the end; None for a line that is too long.

    Empty lines are left out. Memory stays within one line.
    """
    number, size = 0, 0
    kept: list[bytes] = []
    while True:
        piece = stream.readline(_CHUNK)
        ended = piece.endswith(b"\n") or not piece
        size += len(piece)
        if size <= LONGEST_LINE:
            kept.append(piece)
        else:
            kept = []
        if not ended:
            continue
        if size or piece:
            number += 1
            whole = b"".join(kept).strip() if size <= LONGEST_LINE else None
            if whole is None or whole:
                yield number, whole
        if not piece:
            return
        kept, size = [], 0
