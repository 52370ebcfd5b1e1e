"""What model calls used, read from the spans of whatever instrumentation is there already.

With `agentguard.recorder` the only module that uses the OpenTelemetry SDK; nothing imports it unasked.
"""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, Final

from opentelemetry.context import Context
from opentelemetry.sdk.trace import ReadableSpan, Span, SpanProcessor

from agentguard import semconv
from agentguard.call import Usage
from agentguard.log import logger

_INPUT: Final = (semconv.USAGE_INPUT_TOKENS, "gen_ai.usage.prompt_tokens", "llm.token_count.prompt")
_OUTPUT: Final = (semconv.USAGE_OUTPUT_TOKENS, "gen_ai.usage.completion_tokens", "llm.token_count.completion")
_CACHED: Final = (
    semconv.USAGE_CACHE_READ_TOKENS,
    "gen_ai.usage.cache_read_input_tokens",
    "llm.token_count.prompt_details.cache_read",
)
_COST: Final = ("operation.cost", "llm.cost.total")
_MODEL: Final = (semconv.RESPONSE_MODEL, semconv.REQUEST_MODEL, "llm.model_name")
_MOST_OPEN: Final = 10_000
"""Open spans remembered; a span that never ends is forgotten when as many others have begun."""


class UsageProcessor(SpanProcessor):
    """Hands on what each model call used, once.

    Every span that tells tokens counts, unless a span below it told them already: instrumentations lie inside one
    another, and many agents put the total on their root. So a root counts only where nothing below it does. A span
    that ends after the one above it is counted beside it.
    """

    def __init__(self, charge: Callable[[Usage, str | None], None]) -> None:
        """Make a processor for a tracer provider.

        Args:
            charge: Called with the usage and the model's name, None where the span names none, in the context in
                which the span began: `current_run()` is the run that asked. What it raises is logged once.
        """
        self._charge = charge
        self._open: dict[int, contextvars.Context] = {}
        self._told: dict[int, None] = {}
        """Ids of open spans below which tokens were told."""
        self._lock = threading.Lock()
        self._complained = False

    def on_start(self, span: Span, parent_context: Context | None = None) -> None:
        """Remember in which context a span began."""
        context = span.context
        if context is not None:
            with self._lock:
                _put(self._open, context.span_id, contextvars.copy_context())

    def on_end(self, span: ReadableSpan) -> None:
        """Charge what the span tells, and note it for the spans above."""
        context = span.context
        if context is None:
            return
        usage = usage_of(span.attributes or {})
        with self._lock:
            began = self._open.pop(context.span_id, None) or contextvars.copy_context()
            told_below = context.span_id in self._told
            self._told.pop(context.span_id, None)
            if (told_below or usage is not None) and span.parent is not None:
                _put(self._told, span.parent.span_id, None)
        if usage is not None and not told_below:
            began.run(self._charged, usage, _first(span.attributes or {}, _MODEL, _text))

    def _charged(self, usage: Usage, model: str | None) -> None:
        try:
            self._charge(usage, model)
        except Exception as fault:
            if not self._complained:
                self._complained = True
                logger().warning("agentguard.charge_failed", error=f"{type(fault).__name__}: {fault}")


def usage_of(attributes: Mapping[str, Any]) -> Usage | None:
    """Return what the attributes of a span say about tokens and cost; None when they say nothing.

    >>> usage_of({"gen_ai.usage.input_tokens": 120, "gen_ai.usage.cache_read.input_tokens": 64})
    Usage(input_tokens=120, output_tokens=None, cached_tokens=64, cost_usd=None)
    """
    read, written = _first(attributes, _INPUT, _count), _first(attributes, _OUTPUT, _count)
    if read is None and written is None:
        return None
    cached = _first(attributes, _CACHED, _count)
    if cached is not None and read is not None and cached > read:
        read += cached  # some count what was not cached only, against the convention
    return Usage(read, written, cached, _first(attributes, _COST, _amount))


def _first(attributes: Mapping[str, Any], keys: tuple[str, ...], read: Callable[[Any], Any]) -> Any:
    return next((value for key in keys if (value := read(attributes.get(key))) is not None), None)


def _count(value: Any) -> int | None:
    return value if type(value) is int and value >= 0 else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _amount(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        amount = Decimal(str(value))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() and amount >= 0 else None


def _put(kept: dict[int, Any], key: int, value: Any) -> None:
    kept[key] = value
    if len(kept) > _MOST_OPEN:
        del kept[next(iter(kept))]
