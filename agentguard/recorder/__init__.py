"""The local recorder: every ended span on disk as OTLP/JSON lines, the way the OpenTelemetry Collector's file exporter
writes them. The SDK is imported when recording begins.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from opentelemetry import trace

from agentguard.log import logger
from agentguard.redaction import Redaction

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

    from agentguard.recorder.processor import Recorder

__all__ = ["WITHOUT_SECRETS", "record"]

_UNCUT: Final = 2**40

WITHOUT_SECRETS: Final = Redaction(max_chars=_UNCUT, max_total_chars=_UNCUT)
"""Takes secrets out and cuts nothing."""


def record(
    folder: str | Path,
    *,
    tracer_provider: TracerProvider | None = None,
    redaction: Redaction | None = WITHOUT_SECRETS,
    max_bytes: int = 128 * 2**20,
    compress: bool = True,
    flush_seconds: float = 0.05,
) -> Recorder:
    """Record the spans of this process into a folder from now on.

    Args:
        folder: Made when it is not there.
        tracer_provider: An SDK provider. None means the global one; where none is set, one is made and set.
        redaction: Applied to what other instrumentations wrote; the guard's own spans are clean before. None writes
            theirs as they are.
        max_bytes: A file that reaches this size is closed and another begun.
        compress: Closed files are packed by zstd.
        flush_seconds: The longest time a span waits before it is written.

    Returns:
        A handle to flush or close by; closing also happens when the interpreter exits.
    """
    from agentguard.recorder.processor import Recorder

    recorder = Recorder(
        folder, redaction=redaction, max_bytes=max_bytes, compress=compress, flush_seconds=flush_seconds
    )
    provider = tracer_provider or _global_provider()
    provider.add_span_processor(recorder)
    return recorder


def _global_provider() -> TracerProvider:
    provider: Any = trace.get_tracer_provider()
    if hasattr(provider, "add_span_processor"):  # some are none of the SDK's but take its processors (logfire 4)
        return provider  # type: ignore[no-any-return]
    from opentelemetry.sdk.trace import TracerProvider

    made = TracerProvider()
    trace.set_tracer_provider(made)
    if trace.get_tracer_provider() is not made:
        logger().error(
            "agentguard.recorder_unused", provider=type(provider).__qualname__, way_out="pass tracer_provider to record"
        )
    return made
