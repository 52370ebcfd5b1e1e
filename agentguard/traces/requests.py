"""What spans say about one request to a model: the calls it asked for, tokens, cost, and why it stopped."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, cast

from agentguard.call import Usage
from agentguard.traces.conventions import genai_events
from agentguard.traces.messages import parsed, text_in
from agentguard.traces.shapes import bare_name, is_list

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentguard.traces.convention import Answered, Asked
    from agentguard.traces.reading import Reading

_FOR_TOOLS = frozenset({"tool_calls", "tool_call", "tool_use", "tool-calls", "function_call", "tooluse"})


class Request:
    """One model request as its spans tell it. Nested spans of the same request are parts of it, the outermost first."""

    __slots__ = ("_asked", "_read", "end", "parts", "start")

    def __init__(self, reading: Reading) -> None:
        self.parts = [reading]
        self.start = reading.span.start_ns or 0
        self.end = reading.span.end_ns or self.start
        self._asked: list[Asked] | None = None
        self._read = False

    @property
    def span_id(self) -> str:
        """Id of the span that carries the output, else of the outermost."""
        return next((part for part in self.parts if _asked(part)), self.parts[0]).span.span_id

    def absorb(self, inner: Request) -> None:
        """Take over what another span of the same request knows."""
        self.parts += inner.parts
        self._read = False

    @property
    def asked(self) -> list[Asked] | None:
        """Calls in the model's output, in order. None when no span carries the output."""
        if not self._read:
            self._asked, self._read = self._read_asked(), True
        return self._asked

    def _read_asked(self) -> list[Asked] | None:
        found: list[Asked] | None = None
        for part in self.parts:
            calls = _asked(part)
            if calls:
                return calls
            found = calls if found is None else found
        return found

    @property
    def wants_tools(self) -> bool:
        """Whether the model stopped to have tools run."""
        if self.asked is not None:
            return bool(self.asked)
        return any(reason in _FOR_TOOLS for part in self.parts for reason in _reasons(part))

    def history(self) -> dict[str, Answered]:
        """Return the tool results by call id that the request repeats."""
        found: dict[str, Answered] = {}
        for part in self.parts:
            for reader in part.lens.history:
                found.update(reader(part.span))
            if part.span.events:
                found.update(genai_events.history(part.span))
        return found

    def first(self, field: str) -> Any:
        """Return what the first of the spans that has it says under a field of its lens."""
        return next(
            (value for part in self.parts if (value := part.first(getattr(part.lens, field))) is not None), None
        )


def model_name(part: Reading) -> str | None:
    """Return the model that a span names; None when it names none."""
    told = bare_name(part.first(part.lens.model))
    return told or next((told for inside in part.lens.model_inside if (told := inside(part.span))), None)


def answer_text(reading: Reading) -> str | None:
    """Return the text a span ended with; None when it carries none."""
    value = reading.first(reading.lens.answer)
    if value is None:
        value = genai_events.result(reading.span) if reading.span.events else None
    return None if value is None else text_in(value)


def summed(requests: Iterable[Request], root: Reading | None) -> Usage | None:
    """Sum tokens and cost over model requests; without any, take what the root says of itself."""
    counts = [_usage(request) for request in requests]
    known = [each for each in counts if each is not None]
    if not known:
        return _root_usage(root)
    costs = [each.cost_usd for each in known]
    return Usage(
        input_tokens=_total(each.input_tokens for each in known),
        output_tokens=_total(each.output_tokens for each in known),
        cached_tokens=_total(each.cached_tokens for each in known),
        cost_usd=None if any(cost is None for cost in costs) else sum(cast("list[Decimal]", costs), Decimal(0)),
    )


def _usage(request: Request) -> Usage | None:
    read = _count(request.first("input_tokens"))
    written = _count(request.first("output_tokens"))
    cached = _count(request.first("cached_tokens"))
    if read is None and written is None:
        return next((told for part in request.parts if (told := _told_usage(part)) is not None), None)
    if read is not None:
        read += sum(
            _count(part.span.attributes.get(key)) or 0 for part in request.parts for key in part.lens.input_besides
        )
    return Usage(read, written, cached, _decimal(request.first("cost")))


def _root_usage(root: Reading | None) -> Usage | None:
    if root is None or root.mixed:
        return None
    attributes = root.span.attributes
    read = _count(root.first((*root.lens.input_tokens, "gen_ai.aggregated_usage.input_tokens")))
    written = _count(root.first((*root.lens.output_tokens, "gen_ai.aggregated_usage.output_tokens")))
    if read is None and written is None:
        return _told_usage(root)
    cached = _count(root.first((*root.lens.cached_tokens, "gen_ai.aggregated_usage.cache_read.input_tokens")))
    return Usage(read, written, cached, _decimal(attributes.get("operation.cost")))


def _told_usage(part: Reading) -> Usage | None:
    return next((told for usage in part.lens.usage if (told := usage(part.span)) is not None), None)


def _total(counts: Iterable[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _count(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if value >= 0 else None
    if isinstance(value, float) and value.is_integer() and value >= 0:
        return int(value)
    return int(value) if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19 else None


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        cost = Decimal(str(value))
    except InvalidOperation:
        return None
    return cost if cost.is_finite() and cost >= 0 else None


def _asked(part: Reading) -> list[Asked] | None:
    found: list[Asked] | None = None
    for reader in part.lens.asked:
        calls = reader(part.span)
        if calls:
            return calls
        found = calls if found is None else found
    if part.span.events:
        calls = genai_events.asked(part.span)
        return calls if calls else (calls if found is None else found)
    return found


def _reasons(part: Reading) -> list[str]:
    value = parsed(part.first(part.lens.finish))
    reasons = value if is_list(value) else [value]
    # an enumeration's repr: FinishReason.TOOL_CALLS
    return [each.rpartition(".")[2].lower() for each in reasons if isinstance(each, str)]
