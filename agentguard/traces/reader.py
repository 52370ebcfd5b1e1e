"""One file read: its format found by its contents, what it holds yielded, what cannot be read counted."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import Callable, Iterable, Iterator
from typing import IO, Any, Final

import msgspec
import orjson

from agentguard.errors import AgentGuardError
from agentguard.traces.container import Binary, Container, FaultyRecord, Format, Item, Items, Session
from agentguard.traces.containers import BUILT_IN
from agentguard.traces.files import UNPACKING_FAULTS, lines, opened
from agentguard.traces.report import ReadReport
from agentguard.traces.shapes import is_list, is_object

LONGEST_DOCUMENT: Final = 256 * 2**20
"""Bytes of one JSON document over many lines beyond which it is not read."""
_HEAD: Final = 64
_ENVELOPES: Final = ("data", "traces", "trace", "runs", "spans", "observations", "trajectories", "items", "records")
"""Keys under which interfaces and exports wrap the records themselves."""
_DEEPEST: Final = 8

Progress = Callable[[int], None]
Record = tuple[Any, str]
"""A parsed record and where it stood."""


class FileReader:
    """Reads one file once."""

    def __init__(
        self,
        path: str,
        *,
        forced: Format | None = None,
        report: ReadReport,
        progress: Progress | None = None,
        skip: int = 0,
        quiet: int = 0,
        length: int | None = None,
    ) -> None:
        self._path = path
        self._format = forced
        self._told = report
        self._report = report if quiet <= 0 else ReadReport()
        self._progress = progress
        self._skipped = skip
        """Lines to leave out."""
        self._quiet = quiet
        """Lines to read without a word in the report, since another reader reports them."""
        self._length = length
        """Lines to read. None: all."""
        self._at: int | None = None
        self.line = 0
        """The last line read."""
        self.done = 0
        """The last line of which everything was given. A document is done at the end of the file."""

    def batches(self) -> Iterator[list[Item]]:
        """Yield what each record holds; a file that cannot be opened is a TraceError."""
        stream = opened(self._path)
        self._report.files += 1
        try:
            yield from self._stream(stream)
        except UNPACKING_FAULTS as error:
            told = f"{error or type(error).__name__}; what came before it was read"
            self._report.skip(self._path, self._at, "torn archive", told)
        finally:
            stream.close()

    def _stream(self, stream: Any) -> Iterator[list[Item]]:
        head = stream.peek(_HEAD)[:_HEAD]
        if isinstance(self._format, Binary):
            yield from self._binary(self._format, stream)
            return
        fitting = next((one for one in BUILT_IN.values() if isinstance(one, Binary) and one.magic(head)), None)
        if fitting is not None and self._format is None:
            yield from self._binary(fitting, stream)
        else:
            yield from self._text(self._numbered(stream))

    def _binary(self, fitting: Binary, stream: IO[bytes]) -> Iterator[list[Item]]:
        whole = _seekable(stream)
        if whole is None:
            self._skip_file("document too long", "more than 256 MB unpacked; unpack it and read the file itself")
            return
        try:
            yield self._readable(fitting.items(whole, self._path))
        except FaultyRecord as fault:
            self._skip(fault.reason, fault.fault)

    # --- lines -----------------------------------------------------------------------------------------------------

    def _numbered(self, stream: IO[bytes]) -> Iterator[tuple[int, bytes]]:
        for number, line in lines(stream):
            if self._length is not None and number > self._length:
                return
            if number > self._quiet:
                self._report = self._told
            self._at = self.line = number
            if number <= self._skipped:
                continue
            if self._progress is not None:
                self._progress(len(line or b""))
            if line is None:
                self._skip("line too long", "more than 256 MB without an end; write one record a line")
                continue
            self._report.lines += 1
            yield number, line

    def _text(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[list[Item]]:
        first = next(numbered, None)
        if first is None:
            if not self.line:
                self._skip_file("empty file", "nothing in it; was the recorder closed or killed before its first span?")
            return
        whole = _is_json(first[1])
        second = None if whole else next(numbered, None)
        begun = [each for each in (first, second) if each is not None]
        if whole or _is_torn(first[1], second):
            yield from self._lines(itertools.chain(begun, numbered))
        else:
            yield from self._document(itertools.chain(begun, numbered))

    def _lines(self, numbered: Iterator[tuple[int, bytes]]) -> Iterator[list[Item]]:
        for number, line in numbered:
            where = f"{self._path}:{number}"
            self.done = number - 1
            batch = self._fast(line, where)
            if batch is not None:
                yield batch
                continue
            record = self._parsed(line)
            if record is None:
                continue
            fitting = self._fitting(record[0])
            if isinstance(fitting, Session):
                rest = (found for _, line in numbered if (found := self._parsed(line)) is not None)
                yield from self._session(fitting, itertools.chain([(record[0], where)], _placed(rest, self)))
                return
            yield from self._record(record[0], where, 0)

    def _fast(self, line: bytes, where: str) -> list[Item] | None:
        """Return what a line holds if a format has a short way to it and the line keeps to it, else None."""
        for one in _SHORT if self._format is None else (self._format,):
            if not isinstance(one, Container) or one.line is None:
                return None
            try:
                found = self._told_apart(one.line(line, where))
            except Exception:
                continue  # of another format, or to be read once more, loosely, and told of then
            self._format = one
            return found
        return None

    def _parsed(self, line: bytes) -> tuple[Any] | None:
        try:
            return (orjson.loads(line),)
        except orjson.JSONDecodeError as error:
            reason = "nested too deep" if "ecursion" in str(error) else "torn line"
            self._skip(reason, f"no JSON ({error}); the lines before and after it were read")
            return None

    # --- documents -------------------------------------------------------------------------------------------------

    def _document(self, numbered: Iterable[tuple[int, bytes]]) -> Iterator[list[Item]]:
        parts: list[bytes] = []
        size = 0
        for _, line in numbered:
            parts.append(line)
            size += len(line) + 1
            if size > LONGEST_DOCUMENT:
                self._skip_file("document too long", "more than 256 MB in one; write one record a line")
                return
        data = b"\n".join(parts)
        self._at = None
        try:
            records = iter([orjson.loads(data)])
        except orjson.JSONDecodeError:
            records = self._one_after_another(data.decode("utf-8", "replace"))
        yield from self._records(records)

    def _records(self, records: Iterator[Any]) -> Iterator[list[Item]]:
        for record in records:
            fitting = self._fitting(record)
            if isinstance(fitting, Session):
                rest = ((each, self._path) for each in itertools.chain([record], records))
                yield from self._session(fitting, rest)
                return
            yield from self._record(record, self._path, 0)

    def _one_after_another(self, text: str) -> Iterator[Any]:
        """Yield the JSON objects and arrays in a text that hold something, whatever stands between them."""
        at, found, lost = _next_value(text, 0), 0, 0
        while at >= 0:
            try:
                value, end = _decoder.raw_decode(text, at)
            except (ValueError, RecursionError):
                lost += 1
                at = _next_value(text, at + 1)
                continue
            found += 1
            yield value
            at = _next_value(text, end)
        if not found:
            self._skip_file("not JSON", f"it begins {text[:40]!r}; known formats: {', '.join(BUILT_IN)}")
        elif lost:
            self._skip_file("torn record", f"{lost} began and did not end as JSON does; the others were read")

    # --- records ---------------------------------------------------------------------------------------------------

    def _fitting(self, record: Any) -> Format | None:
        chosen = self._format
        if chosen is not None and not isinstance(chosen, Binary) and chosen.accepts(record):
            return chosen
        return detected(record)

    def _record(self, record: Any, where: str, depth: int) -> Iterator[list[Item]]:
        fitting = self._fitting(record)
        if isinstance(fitting, Container):
            yield self._readable(fitting.items(record, where))
        elif isinstance(fitting, Session):
            yield from self._session(fitting, [(record, where)])
        elif is_list(record) and depth < _DEEPEST:
            for each in record:
                yield from self._record(each, where, depth + 1)
        else:
            yield from self._unwrapped(record, where, depth)

    def _unwrapped(self, record: Any, where: str, depth: int) -> Iterator[list[Item]]:
        inner = wrapped(record) if depth < _DEEPEST else None
        if inner is not None:
            yield from self._record(inner, where, depth + 1)
            return
        known = ", ".join(BUILT_IN)
        self._skip("unknown format", f"{_seen(record)}; known: {known}; force one by --format")

    def _session(self, fitting: Session, records: Iterable[Record]) -> Iterator[list[Item]]:
        for item in self._unhurt(fitting.items(records, self._path)):
            yield self._told_apart([item])

    def _readable(self, items: Items) -> list[Item]:
        return self._told_apart(self._unhurt(items))

    def _told_apart(self, items: Items) -> list[Item]:
        found: list[Item] = []
        for item in items:
            if isinstance(item, FaultyRecord):
                self._skip(item.reason, item.fault)
            else:
                found.append(item)
        return found

    def _unhurt(self, items: Items) -> Iterator[Item | FaultyRecord]:
        """Yield what there is until a reader stumbles: it must not take the other records with it."""
        try:
            yield from items
        except RecursionError:
            self._skip("nested too deep", "deeper than any trace; the other records were read")
        except (FaultyRecord, AgentGuardError):
            raise
        except Exception as error:
            self._skip("reader failed", f"{type(error).__name__}: {error}; please report it with the record")

    def _skip(self, reason: str, fault: str) -> None:
        self._report.skip(self._path, self._at, reason, fault)

    def _skip_file(self, reason: str, fault: str) -> None:
        self._report.skip(self._path, None, reason, fault)

    @property
    def here(self) -> str:
        """Where the reader stands."""
        return self._path if self._at is None else f"{self._path}:{self._at}"


_decoder = json.JSONDecoder()
_checker = msgspec.json.Decoder(msgspec.Raw)
_SHORT: Final = tuple(one for one in BUILT_IN.values() if isinstance(one, Container) and one.line is not None)
"""Formats with a short way."""


def _seekable(stream: IO[bytes]) -> IO[bytes] | None:
    """Return a stream to go back and forth in: a file itself, else all that is in it; None when that is too much."""
    if isinstance(getattr(stream, "raw", None), io.FileIO):
        return stream
    data = stream.read(LONGEST_DOCUMENT + 1)
    return io.BytesIO(data) if len(data) <= LONGEST_DOCUMENT else None


def detected(record: Any) -> Container | Session | None:
    """Return the format of a record; None when it is of none that is known."""
    return next((one for one in BUILT_IN.values() if not isinstance(one, Binary) and one.accepts(record)), None)


def is_binary(path: str) -> bool:
    """Whether a file is no text, so that no pass over its bytes finds the ids in it."""
    stream: Any = opened(path)
    try:
        head = bytes(stream.peek(_HEAD)[:_HEAD])
    except UNPACKING_FAULTS:
        return False
    finally:
        stream.close()
    return any(isinstance(one, Binary) and one.magic(head) for one in BUILT_IN.values())


def reads_by_line(path: str) -> bool:
    """Whether a text file may be cut between any two lines: each names its traces, as in formats with a short way."""
    stream = opened(path)
    try:
        _, line = next(lines(stream), (0, None))
        return line is not None and _is_json(line) and detected(orjson.loads(line)) in _SHORT
    except (*UNPACKING_FAULTS, orjson.JSONDecodeError):
        return False
    finally:
        stream.close()


def wrapped(record: Any) -> Any:
    """Return the records inside an envelope, or the record that a text is; None when it is neither."""
    if isinstance(record, str) and record[:1] in ("{", "["):
        try:
            return orjson.loads(record)
        except orjson.JSONDecodeError:
            return None
    if not is_object(record):
        return None
    return next((record[key] for key in _ENVELOPES if isinstance(record.get(key), (list, dict))), None)


def _placed(records: Iterable[tuple[Any]], reader: FileReader) -> Iterator[Record]:
    for (record,) in records:
        yield record, reader.here


def _is_json(line: bytes) -> bool:
    try:
        _checker.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True


def _is_torn(first: bytes, second: tuple[int, bytes] | None) -> bool:
    """Whether a file of lines begins with a torn one, rather than a document with its first line."""
    if second is None or len(first) < 3:
        return False
    return second[1].startswith(b"{") and _is_json(second[1])


def _next_value(text: str, start: int) -> int:
    """Return where the next object or array can begin: the first of a line, or right after another."""
    if text[start : start + 1] in ("{", "["):
        return start
    found = [at + 1 for at in (text.find("\n{", start), text.find("\n[", start)) if at >= 0]
    if start == 0 or text[start - 1 : start] in ("}", "]"):
        found += [at for at in (_after_space(text, start),) if text[at : at + 1] in ("{", "[")]
    return min(found, default=-1)


def _after_space(text: str, start: int) -> int:
    while start < len(text) and text[start] in " \t\r\n,":
        start += 1
    return start


def _seen(record: Any) -> str:
    if is_object(record):
        return f"an object with the keys {', '.join(repr(str(key)[:40]) for key in list(record)[:8]) or '(none)'}"
    return f"a JSON {type(record).__name__}"
