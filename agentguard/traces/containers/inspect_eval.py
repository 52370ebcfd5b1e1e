"""Inspect AI's `.eval` archives: a zip file with a header and a JSON file for each sample."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import IO, Any, Final

import orjson
import zstandard

from agentguard.traces.container import Binary, FaultyRecord, Items
from agentguard.traces.containers.inspect_ai import about, run_of
from agentguard.traces.values import mapped

_LARGEST: Final = 256 * 2**20
_ZSTANDARD: Final = 93
_LOCAL_HEADER: Final = 30


def magic(head: bytes) -> bool:
    """Whether a file begins as a zip archive."""
    return head.startswith(b"PK\x03\x04")


def read_archive(stream: IO[bytes], path: str) -> Items:
    """Yield a run for each sample of an archive."""
    try:
        archive = zipfile.ZipFile(stream)
    except (zipfile.BadZipFile, NotImplementedError, OSError, ValueError) as error:
        yield FaultyRecord("torn archive", f"no zip archive ({error}); was it cut off?")
        return
    with archive:
        names = [info for info in archive.infolist() if info.filename.startswith("samples/")]
        if not names:
            yield FaultyRecord("no samples", "a zip archive without samples/, so no log of Inspect; unpack it first")
            return
        told = _header(archive, stream)
        for info in names:
            try:
                sample = orjson.loads(_member(info, stream))
            except (FaultyRecord, orjson.JSONDecodeError) as error:
                yield FaultyRecord("torn sample", f"{info.filename}: {error}; the others were read")
                continue
            yield run_of(mapped(sample), told, f"{path}/{info.filename}")


def _header(archive: zipfile.ZipFile, stream: IO[bytes]) -> Mapping[str, Any]:
    for name in ("header.json", "_journal/start.json"):
        try:
            return about(mapped(orjson.loads(_member(archive.getinfo(name), stream))))
        except (KeyError, FaultyRecord, orjson.JSONDecodeError):
            continue  # a run that was killed has no header yet
    return {}


def _member(info: zipfile.ZipInfo, stream: IO[bytes]) -> bytes:
    """Return one file of an archive; zipfile itself reads zstd from Python 3.14 on only."""
    try:
        stream.seek(info.header_offset)
    except OSError as error:
        raise FaultyRecord("torn archive", f"it points outside itself ({error})") from error
    header = stream.read(_LOCAL_HEADER)
    skip = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
    stream.seek(skip, 1)
    packed = stream.read(min(info.compress_size, _LARGEST))
    data = b"".join(_unpacked(info.compress_type, packed))
    if len(data) > _LARGEST:
        raise FaultyRecord("sample too long", "more than 256 MB")
    return data


def _unpacked(kind: int, packed: bytes) -> Iterator[bytes]:
    if kind == zipfile.ZIP_STORED:
        yield packed
        return
    try:
        if kind == zipfile.ZIP_DEFLATED:
            yield zlib.decompressobj(-zlib.MAX_WBITS).decompress(packed, _LARGEST + 1)
        elif kind == _ZSTANDARD:
            yield zstandard.ZstdDecompressor().stream_reader(packed).read(_LARGEST + 1)
        else:
            raise FaultyRecord("unknown packing", f"packed by method {kind}; known: stored, deflate, zstd")
    except (zlib.error, zstandard.ZstdError) as error:
        raise FaultyRecord("torn sample", str(error)) from error


INSPECT_EVAL: Final = Binary(name="inspect-eval", magic=magic, items=read_archive)
