"""What spans say about one tool call, and when two spans are about the same one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agentguard import semconv
from agentguard.traces.arguments import NOTHING, Arguments, decode, looks_like_schema, plain
from agentguard.traces.conventions import genai_events
from agentguard.traces.messages import parsed
from agentguard.traces.reading import Reading, failed_by_attribute, refused_by_attribute
from agentguard.traces.results import NOWHERE, Outcome, Source, decode_result
from agentguard.traces.shapes import bare_name, is_object
from agentguard.traces.span import Status

if TYPE_CHECKING:
    from collections.abc import Mapping

PHANTOM = "(merged tools)"
"""The name of a span that sums up parallel calls and is none itself (google-adk 2.13)."""

_PREFIXES = ("execute_tool ", "tools/call ", "MCP send tools/call ", "running tool: ")
_SUFFIXES = (".run", ".tool")
_JOINTS = "-._/:"
_EXCEPTION = "exception"


class Ran:
    """One tool call as its spans tell it. Nested spans of the same call are parts of it, the outermost first."""

    __slots__ = (
        "_arguments",
        "_call_id",
        "_outcome",
        "end",
        "guard",
        "name",
        "named_by",
        "other_name",
        "parts",
        "start",
    )

    def __init__(self, reading: Reading) -> None:
        span = reading.span
        self.parts = [reading]
        self.start: int | None = span.start_ns
        self.end: int | None = span.end_ns
        self.name, self.named_by = tool_name(reading)
        self._call_id: str | None = _text(reading.first(reading.lens.call_id))
        self._outcome: Outcome | None = None
        self.guard: Mapping[str, Any] | None = span.attributes if semconv.CALL_SEQ in span.attributes else None
        self.other_name: str | None = None
        self._arguments: tuple[Arguments, Source] | None = None

    @property
    def span_id(self) -> str:
        """Id of the outermost span."""
        return self.parts[0].span.span_id

    @property
    def arguments(self) -> Arguments:
        """Arguments, undone; the best that any of the spans carries."""
        return self.told_arguments()[0]

    def told_arguments(self) -> tuple[Arguments, Source]:
        """Return the arguments and where they stood."""
        if self._arguments is None:
            self._arguments = _best_arguments(self.parts)
        return self._arguments

    def absorb(self, inner: Ran) -> None:
        """Take over what another span of the same call knows."""
        if inner.name != self.name:
            # the longer name carries a prefix that only one instrumentation adds
            self.other_name = max(self.name, inner.name, key=len)
            self.name = min(self.name, inner.name, key=len)
        self.parts += inner.parts
        self._call_id = self._call_id or inner._call_id
        self._outcome = None
        self.guard = self.guard or inner.guard
        if self._arguments is not None:
            self._arguments = _better(self._arguments, inner.told_arguments())

    def add_part(self, reading: Reading) -> None:
        """Take over what a nameless span inside knows of how the call went."""
        self.parts.append(reading)
        self._outcome = None

    def is_same(self, other: Ran) -> bool:
        """Whether two nested spans can be one call: same name, ids and arguments that do not conflict."""
        if not same_name(self.name, other.name):
            return False
        if self._call_id is not None and other._call_id is not None and self._call_id != other._call_id:
            return bool(self.synthetic or other.synthetic) and not self.conflicts(other)
        return not self.conflicts(other)

    @property
    def synthetic(self) -> bool:
        """Whether the id was made up by the guard."""
        return self.guard is not None and bool(self.guard.get(semconv.CALL_ID_SYNTHETIC))

    def conflicts(self, other: Ran) -> bool:
        """Whether both carry arguments, and not the same."""
        mine, theirs = self.arguments.named, other.arguments.named
        return mine is not None and theirs is not None and mine != theirs

    def outcome(self) -> Outcome:
        """Return the result and whether the call failed, from whichever span says so."""
        if self._outcome is None:
            one = len(self.parts) == 1
            self._outcome = _outcome_of_one(self.parts[0]) if one else _outcome_of_all(self.parts)
        return self._outcome

    @property
    def call_id(self) -> str | None:
        """The provider's tool-call id; where no span has it, the one that the recorded result names."""
        return self._call_id or self.outcome().call_id

    def error_kind(self) -> str:
        """Return the type of the failure as recorded, without its module; empty when none was."""
        for part in self.parts:
            for name, _, attributes in part.span.events:
                if name == _EXCEPTION and attributes.get("exception.type"):
                    return str(attributes["exception.type"]).rpartition(".")[2]
        kinds = (part.span.attributes.get(semconv.ERROR_TYPE) for part in self.parts)
        return next((str(kind).rpartition(".")[2] for kind in kinds if kind), "")

    @property
    def refused(self) -> bool:
        """Whether a span says that the call never reached the tool."""
        if len(self.parts) == 1:
            return refused_by_attribute(self.parts[0])
        return any(refused_by_attribute(part) for part in self.parts)


def tool_name(reading: Reading) -> tuple[str, str]:
    """Return the tool's name and the attribute it stood in."""
    lens = reading.lens
    attributes = reading.span.attributes
    for key in lens.tool_name:
        value = attributes.get(key)
        if value:
            return bare_name(value) or str(value), key
    return _stripped(reading.span.name), "span name"


def same_name(one: str, other: str) -> bool:
    """Whether two names are equal, or one is the other behind a prefix such as `travel-` or `travel_agent.`."""
    if one == other:
        return True
    short, long = sorted((one, other), key=len)
    return bool(short) and long.endswith(short) and long[-len(short) - 1] in _JOINTS


def _stripped(name: str) -> str:
    for prefix in _PREFIXES:
        if name.startswith(prefix):
            return name[len(prefix) :]
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(name) > len(suffix):
            return name[: -len(suffix)]
    return name


def _better(one: tuple[Arguments, Source], other: tuple[Arguments, Source]) -> tuple[Arguments, Source]:
    if one[0].named is not None or (one[0].raw is not None and other[0].named is None):
        return one
    return other


def _best_arguments(parts: list[Reading]) -> tuple[Arguments, Source]:
    best, source = NOTHING, NOWHERE
    for part in parts:
        key, value = _argument_value(part)
        named = plain(value)
        if named is not None:
            return Arguments(named), (part.span.span_id, key)
        found = decode(value, schema_of(part)) if value is not None else NOTHING
        if found.named is not None:
            return found, (part.span.span_id, key)
        if found.raw is not None and best.raw is None:
            best, source = found, (part.span.span_id, key)
    return best, source


def _argument_value(part: Reading) -> tuple[str, Any]:
    attributes = part.span.attributes
    for key in part.lens.arguments:
        value = attributes.get(key)
        if value is not None:
            return key, value
    if part.span.events:
        value = genai_events.arguments(part.span)
        if value is not None:
            return genai_events.TOOL_MESSAGE, value
    return _PARAMETERS, _parameters(attributes)


_PARAMETERS = "tool.parameters"


def _parameters(attributes: Mapping[str, Any]) -> Any:
    if _PARAMETERS in attributes:
        value = parsed(attributes[_PARAMETERS])
        return None if looks_like_schema(value) else value
    # a backend that flattens: one level is certain, a dot more may be part of a name
    start = _PARAMETERS + "."
    flat = {key[len(start) :]: value for key, value in attributes.items() if key.startswith(start)}
    return flat if flat and not any("." in key for key in flat) else None


def schema_of(part: Reading) -> Mapping[str, Any] | None:
    """Return the JSON Schema of the tool's arguments that the span itself carries."""
    if not part.lens.schema:
        return None
    value = parsed(part.first(part.lens.schema))
    return cast("Mapping[str, Any]", value) if looks_like_schema(value) or _declares_nothing(value) else None


def _declares_nothing(value: Any) -> bool:
    return is_object(value) and value.get("type") == "object" and not value.get("properties", None)


def _outcome_of_one(part: Reading) -> Outcome:
    key, value = _result_value(part)
    why = failure(part)
    if why is not None or not key:
        return _outcome_of_all([part])
    found = decode_result(value)
    return Outcome(found.content, found.is_error, True, (part.span.span_id, key), None, found.call_id)


def _outcome_of_all(parts: list[Reading]) -> Outcome:
    content: Any = None
    source = NOWHERE
    error: str | None = None
    call_id: str | None = None
    failed = has_content = False
    for part in parts:
        if not has_content:
            key, value = _result_value(part)
            if key:
                decoded = decode_result(value)
                content, call_id, has_content = decoded.content, decoded.call_id, True
                source = (part.span.span_id, key)
                failed = failed or decoded.is_error
        why = failure(part)
        if why is not None:
            failed = True
            # an exception says more than the status around it
            if error is None or part.span.events:
                error = why
    if failed and (not has_content or content in _EMPTY):
        content = error
        source = (parts[0].span.span_id, "status")
    return Outcome(content, failed, recorded=has_content or failed, source=source, error=error, call_id=call_id)


_EMPTY: tuple[Any, ...] = (None, "", {}, [])


def _result_value(part: Reading) -> tuple[str, Any]:
    attributes = part.span.attributes
    for key in part.lens.result:
        value = attributes.get(key)
        if value is not None:
            return key, value
    if part.span.events:
        value = genai_events.result(part.span)
        if value is not None:
            return genai_events.CHOICE, value
    return "", None


def failure(part: Reading) -> str | None:
    """Return why a span failed, in its own words; None when nothing says that it did."""
    span = part.span
    # a span that says it went well may have recorded an exception that it dealt with
    message = exception_message(part) if span.events and span.status_code != Status.OK else None
    if message is None and span.status_code != Status.ERROR and not failed_by_attribute(part):
        return None
    return message or span.status_message or str(span.attributes.get(semconv.ERROR_TYPE) or "failed")


def exception_message(part: Reading) -> str | None:
    """Return the message of the exception that a span recorded; None when it recorded none."""
    for name, _, attributes in part.span.events:
        if name == _EXCEPTION:
            return str(attributes.get("exception.message") or attributes.get("exception.type") or _EXCEPTION)
    return None


def _text(value: Any) -> str | None:
    return None if value is None else str(value)
