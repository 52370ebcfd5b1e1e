"""Writing a run and its calls as OpenTelemetry spans of the GenAI convention. Only the API is used here.

Spans are started and made current by hand: `start_as_current_span` costs a quarter more, and an exception recorded on
a span costs eight of it.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Mapping
from typing import Any, Final, ParamSpec, TypeVar

import msgspec
import orjson
import structlog
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from agentguard import semconv
from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import Action, Decision
from agentguard.fingerprint import digest
from agentguard.redaction import Redaction
from agentguard.trajectory import UNKNOWN, Ending, RunKey

CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES: Final = ("true", "1", "span_only", "span_and_event", "event_only")

P = ParamSpec("P")
T = TypeVar("T")


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """Whether arguments and results are written, and what is taken out of them first."""

    capture: bool = False
    """Off by default, as the convention asks. Loops, budgets and endings are scored from fingerprints without it."""
    redaction: Redaction = Redaction()
    """Applied to spans, logs and feedback alike."""

    @classmethod
    def from_environment(cls) -> Content:
        """Return what OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT says; off when it is unset."""
        return cls(capture=os.environ.get(CAPTURE_VARIABLE, "").strip().lower() in _CAPTURES)

    def redact_text(self, text: str) -> str:
        """Return a text as it may leave the process."""
        return self.redaction.text(text)

    def as_json(self, value: Any) -> str:
        """Return a value as JSON text that may leave the process."""
        return orjson.dumps(self.redaction.value(value), option=orjson.OPT_SORT_KEYS).decode()


class SpanWriter:
    """Makes the spans of runs. Its own faults are logged once and never reach the host."""

    def __init__(
        self,
        *,
        tracer_provider: TracerProvider | None = None,
        content: Content | None = None,
        openinference: bool = False,
    ) -> None:
        from agentguard import __version__

        provider = tracer_provider or trace.get_tracer_provider()
        self.tracer = provider.get_tracer("agentguard", __version__)
        self.content = content or Content.from_environment()
        self.openinference = openinference
        self._logged: set[str] = set()

    def run(
        self,
        *,
        run_id: str,
        key: RunKey,
        agent: str | None,
        task: str | None,
        policy_name: str,
        policy_digest: str,
        mode: str,
        parent: RunSpan | None = None,
    ) -> RunSpan:
        """Start a run's span and export at once that it started, so that a run that never ends can be known by it."""
        attributes = _without_none({
            semconv.RUN_ID: run_id,
            semconv.REQUEST_MODEL: _said(key.model),
            semconv.HARNESS_NAME: _said(key.harness),
            semconv.HARNESS_DIGEST: key.digest,
            semconv.AGENT_NAME: agent,
            semconv.RUN_TASK: task,
            semconv.POLICY_NAME: policy_name,
            semconv.POLICY_DIGEST: policy_digest,
            semconv.POLICY_MODE: mode,
        })  # fmt: skip
        return self.guarded(self._run, attributes, agent, parent) or RunSpan(self, trace.INVALID_SPAN, {}, owned=False)

    def guarded(self, write: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Return what `write` does; log its fault once, and return None, where it fails."""
        try:
            return write(*args, **kwargs)
        except Exception as fault:
            name = f"{write.__name__}: {type(fault).__name__}"
            if name not in self._logged:
                self._logged.add(name)
                structlog.get_logger("agentguard").warning("agentguard.telemetry_failed", what=name, error=str(fault))
            return None

    def _run(self, attributes: dict[str, Any], agent: str | None, parent: RunSpan | None) -> RunSpan:
        current = trace.get_current_span()
        if parent is None and _is_open(current, semconv.INVOKE_AGENT, semconv.INVOKE_WORKFLOW):
            current.set_attributes(attributes)
            run = RunSpan(self, current, attributes, owned=False)
        else:
            name = f"{semconv.INVOKE_AGENT} {agent}" if agent else semconv.INVOKE_AGENT
            attributes = {semconv.OPERATION_NAME: semconv.INVOKE_AGENT, **attributes}
            run = RunSpan(self, self.tracer.start_span(name, attributes=attributes), attributes, owned=True)
        if run.recording:
            within = trace.set_span_in_context(run.span)
            self.tracer.start_span(semconv.RUN_STARTED, within, attributes=attributes).end()
        return run


class RunSpan:
    """The span of a run."""

    def __init__(self, writer: SpanWriter, span: Span, attributes: Mapping[str, Any], *, owned: bool) -> None:
        self.writer = writer
        self.span = span
        self.owned = owned
        """False where a framework's own span is annotated instead; then it is the framework that ends it."""
        self.recording = span.is_recording()
        """False with a no-op provider or a run that is not sampled: nothing needs to be built then."""
        self.digest_key = secrets.token_bytes(16)
        """Never exported: fingerprints in spans can be compared within the run, not guessed back."""
        self.context = trace.set_span_in_context(span)
        self._common = {
            semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
            semconv.TOOL_TYPE: "function",
            semconv.RUN_ID: attributes.get(semconv.RUN_ID, ""),
        }
        self._tokens: list[Any] = []

    def attach(self) -> None:
        """Make the run's span current for its block."""
        if self.recording:
            self._tokens.append(otel_context.attach(trace.set_span_in_context(self.span)))

    def detach(self) -> None:
        """Make current what was before."""
        if self._tokens:
            otel_context.detach(self._tokens.pop())

    def call(
        self,
        call: ToolCall,
        decision: Decision,
        *,
        seq: int,
        lane: str,
        turn: int | None,
        user_turn: bool,
        fingerprint: bytes,
    ) -> CallSpan | None:
        """Start the span of a call that is about to run, and make it current; None where telemetry fails."""
        attributes = self._attributes(call, decision, seq, lane, turn, user_turn, fingerprint)
        return self.writer.guarded(self._call, call, decision, attributes)

    def refused(
        self,
        call: ToolCall,
        decision: Decision,
        *,
        seq: int,
        lane: str,
        turn: int | None,
        user_turn: bool,
        fingerprint: bytes,
    ) -> None:
        """Write the span of a call that did not run: most frameworks leave no trace of it."""
        attributes = self._attributes(call, decision, seq, lane, turn, user_turn, fingerprint)
        self.writer.guarded(self._refused, call, decision, attributes)

    def finish(
        self, *, ending: Ending, outcome: bool | None, steps: int, halt_code: str | None, usage: Usage | None
    ) -> None:
        """Say how the run ended, and end its span where it is ours."""
        self.writer.guarded(self._finish, ending, outcome, steps, halt_code, usage)

    def _attributes(
        self,
        call: ToolCall,
        decision: Decision,
        seq: int,
        lane: str,
        turn: int | None,
        user_turn: bool,  # noqa: FBT001 - private, called twice just above
        fingerprint: bytes,
    ) -> dict[str, Any]:
        attributes: dict[str, Any] = {
            **self._common,
            semconv.TOOL_NAME: call.name,
            semconv.CALL_SEQ: seq,
            semconv.CALL_LANE: lane,
            semconv.CALL_FINGERPRINT: digest(fingerprint, key=self.digest_key),
            semconv.CALL_ACTION: decision.action.word,
            semconv.CALL_EXECUTED: decision.action < _BLOCK,
        }
        if call.id is not None:
            attributes[semconv.TOOL_CALL_ID] = call.id
        if turn is not None:
            attributes[semconv.CALL_TURN] = turn
        if user_turn:
            attributes[semconv.CALL_USER_TURN] = True
        if self.writer.content.capture:
            self._add_arguments(attributes, call)
        return attributes

    def _add_arguments(self, attributes: dict[str, Any], call: ToolCall) -> None:
        content = self.writer.content
        raw = call.raw_arguments
        text = content.as_json(call.arguments) if raw is None else content.redact_text(raw)
        attributes[semconv.TOOL_CALL_ARGUMENTS] = text
        if self.writer.openinference:
            attributes[semconv.OI_SPAN_KIND] = "TOOL"
            attributes[semconv.OI_INPUT_VALUE] = text
            attributes[semconv.OI_INPUT_MIME] = "application/json" if raw is None else "text/plain"

    def _call(self, call: ToolCall, decision: Decision, attributes: dict[str, Any]) -> CallSpan:
        current = trace.get_current_span()
        if current is not self.span and _is_open_tool(current, call.name):
            current.set_attributes(attributes)
            opened = CallSpan(self, current, owned=False)
        else:
            span = self.writer.tracer.start_span(f"{semconv.EXECUTE_TOOL} {call.name}", attributes=attributes)
            opened = CallSpan(self, span, owned=True)
        if decision.verdicts:
            _add_verdicts(opened.span, decision)
        opened.attach()
        return opened

    def _refused(self, call: ToolCall, decision: Decision, attributes: dict[str, Any]) -> None:
        code = decision.code or "refused"
        attributes[semconv.ERROR_TYPE] = f"agentguard.{code.partition('.')[0]}"
        if self.writer.content.capture and decision.feedback is not None:
            attributes[semconv.TOOL_CALL_RESULT] = self.writer.content.as_json(decision.feedback)
        span = self.writer.tracer.start_span(f"{semconv.EXECUTE_TOOL} {call.name}", attributes=attributes)
        _add_verdicts(span, decision)
        span.set_status(Status(StatusCode.ERROR, f"refused: {code}"))
        span.end()

    def _finish(
        self, ending: Ending, outcome: bool | None, steps: int, halt_code: str | None, usage: Usage | None
    ) -> None:
        if not self.recording:
            return
        self.span.set_attributes(_without_none({
            semconv.RUN_ENDING: str(ending),
            semconv.RUN_OUTCOME: outcome,
            semconv.RUN_STEPS: steps,
            semconv.RUN_HALT_CODE: halt_code,
            semconv.RUN_INPUT_TOKENS: usage.input_tokens if usage else None,
            semconv.RUN_OUTPUT_TOKENS: usage.output_tokens if usage else None,
            semconv.RUN_COST_USD: float(usage.cost_usd) if usage and usage.cost_usd is not None else None,
        }))  # fmt: skip
        if ending in (Ending.HALTED, Ending.FAILED):
            self.span.set_status(Status(StatusCode.ERROR, halt_code or str(ending)))
        if self.owned:
            self.span.end()


class CallSpan:
    """The span of a call that runs."""

    __slots__ = ("_owned", "_run", "_token", "span")

    def __init__(self, run: RunSpan, span: Span, *, owned: bool) -> None:
        self._run = run
        self.span = span
        self._owned = owned
        self._token: Any = None

    def attach(self) -> None:
        """Make it current, while the tool's own code runs."""
        if self._owned and self._token is None:
            self._token = otel_context.attach(trace.set_span_in_context(self.span))

    def detach(self) -> None:
        """Make current what was before."""
        token, self._token = self._token, None
        if token is not None:
            otel_context.detach(token)

    def end(self, result: ToolResult | None, *, fingerprint: bytes | None, error: BaseException | None) -> None:
        """Say what came back and end the span. `fingerprint` is that of the normalised result, None when unknown."""
        self.detach()
        self._run.writer.guarded(self._end, result, fingerprint, error)

    def _end(self, result: ToolResult | None, fingerprint: bytes | None, error: BaseException | None) -> None:
        span, content = self.span, self._run.writer.content
        if fingerprint is not None:
            span.set_attribute(semconv.RESULT_FINGERPRINT, digest(fingerprint, key=self._run.digest_key))
        if content.capture and result is not None:
            text = content.as_json(result.content)
            span.set_attribute(semconv.TOOL_CALL_RESULT, text)
            if self._run.writer.openinference:
                span.set_attribute(semconv.OI_OUTPUT_VALUE, text)
                span.set_attribute(semconv.OI_OUTPUT_MIME, "application/json")
        if error is not None or (result is not None and result.is_error):
            name = "tool_error" if error is None else _qualified(type(error))
            span.set_attribute(semconv.ERROR_TYPE, name)
            span.set_status(Status(StatusCode.ERROR, name))
        if self._owned:
            span.end()


_BLOCK = Action.BLOCK


def _add_verdicts(span: Span, decision: Decision) -> None:
    for verdict in decision.verdicts:
        span.add_event(
            semconv.VERDICT,
            {
                semconv.VERDICT_CHECK: verdict.check,
                semconv.VERDICT_CODE: verdict.code,
                semconv.VERDICT_ACTION: verdict.action.word,
                semconv.VERDICT_REASON: verdict.reason,
            },
        )


def _is_open(span: Span, *operations: str) -> bool:
    attributes = getattr(span, "attributes", None)  # the SDK's span has them, the API's has not
    return span.is_recording() and bool(attributes) and attributes.get(semconv.OPERATION_NAME) in operations


def _is_open_tool(span: Span, tool: str) -> bool:
    if not span.is_recording():
        return False
    attributes = getattr(span, "attributes", None) or {}
    marked = attributes.get(semconv.OPERATION_NAME) == semconv.EXECUTE_TOOL
    marked = marked or attributes.get(semconv.MCP_METHOD) == semconv.MCP_TOOLS_CALL
    return marked and attributes.get(semconv.TOOL_NAME) == tool and semconv.CALL_SEQ not in attributes


def _qualified(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _without_none(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _said(name: str) -> str | None:
    return None if name == UNKNOWN else name
