"""Writing a run and its calls as OpenTelemetry spans of the GenAI convention. Only the API is used here.

Spans are started and made current by hand: `start_as_current_span` costs a quarter more, and an exception recorded on
a span costs eight of it.
"""

from __future__ import annotations

import functools
import os
import secrets
import threading
from collections.abc import Mapping
from typing import Any, Final

import msgspec
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, Status, StatusCode, TracerProvider

from agentguard import semconv
from agentguard.attempt import Attempt
from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.decision import ALLOWED, Action, Decision
from agentguard.fingerprint import digester, normalised
from agentguard.ledger import Kind, Ledger
from agentguard.log import logger
from agentguard.loops import Outcome, Token
from agentguard.redaction import Redacted, Redaction
from agentguard.trajectory import MAIN_LANE, UNKNOWN, Ending, RunKey

CAPTURE_VARIABLE: Final = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
_CAPTURES: Final = ("true", "1", "span_only", "span_and_event")
"""Values that ask for content on spans; EVENT_ONLY does not, and no event of ours carries content."""
_LONGEST_NAME: Final = 200
_MOST_CODES: Final = 64


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

    def written(self, value: Any) -> Redacted:
        """Return a value as it may leave the process."""
        return self.redaction.apply(value)

    def as_json(self, value: Any) -> str:
        """Return a value as JSON text that may leave the process."""
        return self.redaction.apply(value).json


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
        # A run that goes wrong says the same few sentences over and over.
        self.reason = functools.lru_cache(maxsize=1_024)(self.content.redact_text)
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
            semconv.RUN_PARENT_ID: parent.run_id if parent is not None else None,
            semconv.REQUEST_MODEL: _said(key.model),
            semconv.HARNESS_NAME: _said(key.harness),
            semconv.HARNESS_DIGEST: key.digest,
            semconv.AGENT_NAME: agent,
            semconv.RUN_TASK: task,
            semconv.POLICY_NAME: policy_name,
            semconv.POLICY_DIGEST: policy_digest,
            semconv.POLICY_MODE: mode,
        })  # fmt: skip
        try:
            return self._run(attributes, agent, parent)
        except Exception as fault:
            self.failed("run", fault)
            return RunSpan(self, trace.INVALID_SPAN, {}, owned=False)

    def failed(self, what: str, fault: Exception) -> None:
        """Log a fault of telemetry, once for each place and kind; the agent goes on."""
        name = f"{what}: {type(fault).__name__}"
        if name not in self._logged:
            self._logged.add(name)
            logger().warning("agentguard.telemetry_failed", what=name, error=str(fault))

    def _run(self, attributes: dict[str, Any], agent: str | None, parent: RunSpan | None) -> RunSpan:
        current = trace.get_current_span()
        if _is_open(current, semconv.INVOKE_AGENT, semconv.INVOKE_WORKFLOW):
            run = RunSpan(self, current, attributes, owned=False)
            current.set_attributes(attributes)
        else:
            run = RunSpan(self, self._root(attributes, agent, parent), attributes, owned=True)
        if run.recording:
            marks = {**attributes, semconv.OI_SPAN_KIND: "CHAIN"} if self.openinference else attributes
            self.tracer.start_span(semconv.RUN_STARTED, run.context, attributes=marks).end()
            if self.openinference:
                run.span.set_attributes(self._root_panes(run, attributes.get(semconv.RUN_TASK)))
        return run

    def _root_panes(self, run: RunSpan, task: str | None) -> dict[str, str]:
        """Return what shows a run as an agent that was given a task; what a framework says of its own span stays."""
        panes = {semconv.OI_SPAN_KIND: "AGENT"}
        if run.fills_panes and task is not None:
            panes[semconv.OI_INPUT_VALUE] = self.content.redact_text(task)
            panes[semconv.OI_INPUT_MIME] = "text/plain"
        return panes

    def _root(self, attributes: dict[str, Any], agent: str | None, parent: RunSpan | None) -> Span:
        """Start the span of a run; a child run in a thread without context hangs under its parent all the same."""
        name = f"{semconv.INVOKE_AGENT} {agent[:_LONGEST_NAME]}" if agent else semconv.INVOKE_AGENT
        return self.tracer.start_span(
            name,
            _context_or(parent.context if parent is not None else None),
            attributes={semconv.OPERATION_NAME: semconv.INVOKE_AGENT, **attributes},
        )


class RunSpan:
    """The span of a run."""

    def __init__(self, writer: SpanWriter, span: Span, attributes: Mapping[str, Any], *, owned: bool) -> None:
        self.writer = writer
        self.span = span
        self.owned = owned
        """False where a framework's own span is annotated instead; then it is the framework that ends it."""
        self.run_id: str = attributes.get(semconv.RUN_ID, "")
        self.recording = span.is_recording()
        """False with a no-op provider or a run that is not sampled: nothing needs to be built then."""
        self.digest = digester(secrets.token_bytes(16))
        """The key is never exported: fingerprints in spans can be compared within the run, not guessed back."""
        self.context = trace.set_span_in_context(span)
        self._common = {
            semconv.OPERATION_NAME: semconv.EXECUTE_TOOL,
            semconv.TOOL_TYPE: "function",
            semconv.RUN_ID: self.run_id,
        }
        if writer.openinference:
            self._common[semconv.OI_SPAN_KIND] = "TOOL"
        self.captures = writer.content.capture
        self.fills_panes = owned and self.captures and writer.openinference
        """Whether the root tells task and ending where backends look for input and output."""
        self._refusals = 0
        self._found: dict[str, tuple[int, Action]] = {}
        """How often each code was found, and the strongest action it asked for."""
        self._lock = threading.Lock()
        self._tokens: list[Any] = []

    def attach(self) -> None:
        """Make the run's span current for its block."""
        if self.span.get_span_context().is_valid:  # one that is not sampled too: what is under it must know
            self._tokens.append(otel_context.attach(trace.set_span_in_context(self.span)))

    def detach(self) -> None:
        """Make current what was before."""
        if self._tokens:
            otel_context.detach(self._tokens.pop())

    def call(self, attempt: Attempt) -> CallSpan | None:
        """Start the span of a call that is about to run, and make it current; None where telemetry fails."""
        try:
            return self._call(attempt)
        except Exception as fault:
            self.writer.failed("call", fault)
            return None

    def refused(self, attempt: Attempt) -> CallSpan | None:
        """Write the span of a call that did not run: most frameworks leave no trace of it. It has ended already."""
        try:
            return CallSpan(self, self._refused(attempt), owned=False)
        except Exception as fault:
            self.writer.failed("refused", fault)
            return None

    def finish(
        self,
        *,
        ending: Ending,
        outcome: bool | None,
        steps: int,
        halt_code: str | None,
        usage: Usage | None,
        ledger: Ledger | None = None,
    ) -> None:
        """Say how the run ended and what it used of its budget, and end its span where it is ours."""
        try:
            if self.span.is_recording():
                self._finish(ending, outcome, steps, halt_code, usage)
                self._add_findings()
                if ledger is not None:
                    self.span.set_attributes(_budget(ledger))
                if self.owned:
                    self.span.end()
        except Exception as fault:
            self.writer.failed("finish", fault)

    def _attributes(self, attempt: Attempt) -> dict[str, Any]:
        """Return what a call's span says at its start. What is usual is left out: each attribute costs."""
        call, decision = attempt.call, attempt.decision
        attributes: dict[str, Any] = {
            **self._common,
            semconv.TOOL_NAME: call.name if call.name.isascii() else _encodable(call.name),
            semconv.CALL_SEQ: attempt.seq,
            semconv.CALL_FINGERPRINT: self.digest(attempt.place.key),
        }
        if decision is not ALLOWED:
            attributes[semconv.CALL_ACTION] = _WORDS[decision.action]
        if attempt.lane != MAIN_LANE:
            attributes[semconv.CALL_LANE] = attempt.lane
        if call.id is not None:
            attributes[semconv.TOOL_CALL_ID] = call.id
        if attempt.turn is not None:
            attributes[semconv.CALL_TURN] = attempt.turn
        if attempt.user_turn:
            attributes[semconv.CALL_USER_TURN] = True
        if self.captures:
            self._add_arguments(attributes, call)
        return attributes

    def _add_arguments(self, attributes: dict[str, Any], call: ToolCall) -> None:
        raw = call.raw_arguments
        written = self.writer.content.written(call.arguments if raw is None else raw)
        text = written.json if raw is None else str(written.value)
        attributes[semconv.TOOL_CALL_ARGUMENTS] = text
        attributes.update(_alterations(written))
        if self.writer.openinference:
            attributes[semconv.OI_INPUT_VALUE] = text
            attributes[semconv.OI_INPUT_MIME] = "application/json" if raw is None else "text/plain"

    def _call(self, attempt: Attempt) -> CallSpan:
        attributes = self._attributes(attempt)
        current = trace.get_current_span()
        if current is not self.span and _is_open_tool(current, attempt.call.name):
            current.set_attributes(attributes)
            opened = CallSpan(self, current, owned=False)
        else:
            context = None if current is self.span or current.get_span_context().is_valid else self.context
            name = f"execute_tool {attributes[semconv.TOOL_NAME][:_LONGEST_NAME]}"
            opened = CallSpan(self, self.writer.tracer.start_span(name, context, attributes=attributes), owned=True)
        if attempt.decision.verdicts:
            self._add_verdicts(opened.span, attempt.decision)
        opened.attach()
        return opened

    def _refused(self, attempt: Attempt) -> Span:
        decision, attributes = attempt.decision, self._attributes(attempt)
        code = decision.code or "refused"
        attributes[semconv.CALL_EXECUTED] = False
        attributes[semconv.ERROR_TYPE] = f"agentguard.{code.partition('.')[0]}"
        if self.captures and decision.feedback is not None:
            self._add_feedback(attributes, decision.feedback)
        name = f"execute_tool {attributes[semconv.TOOL_NAME][:_LONGEST_NAME]}"
        span = self.writer.tracer.start_span(name, _context_or(self.context), attributes=attributes)
        self._add_verdicts(span, decision)
        span.set_status(_error(f"refused: {code}"))
        span.end()
        return span

    def _add_feedback(self, attributes: dict[str, Any], feedback: str) -> None:
        text = self.writer.content.as_json(feedback)
        attributes[semconv.TOOL_CALL_RESULT] = text
        if self.writer.openinference:
            attributes[semconv.OI_OUTPUT_VALUE] = text
            attributes[semconv.OI_OUTPUT_MIME] = "application/json"

    def _add_verdicts(self, span: Span, decision: Decision) -> None:
        """Write an event for each verdict; one that asks for nothing says that a check failed or a person agreed."""
        self._count(decision)
        for verdict in decision.verdicts:
            attributes: dict[str, Any] = {
                semconv.VERDICT_CHECK: verdict.check,
                semconv.VERDICT_CODE: verdict.code,
                semconv.VERDICT_ACTION: _WORDS[verdict.action],
                semconv.VERDICT_REASON: self.writer.reason(verdict.reason),
            }
            if "limit" in verdict.data:
                attributes[semconv.VERDICT_LIMIT] = verdict.data["limit"]
                attributes[semconv.VERDICT_USED] = verdict.data["used"]
            span.add_event(semconv.VERDICT, attributes)

    def _count(self, decision: Decision) -> None:
        with self._lock:
            self._refusals += decision.action >= Action.BLOCK
            for verdict in decision.verdicts:
                times, strongest = self._found.get(verdict.code, (0, verdict.action))
                if times or len(self._found) < _MOST_CODES:
                    self._found[verdict.code] = times + 1, max(strongest, verdict.action)

    def _add_findings(self) -> None:
        """Write what was found as evaluations of the run, one for each code, which backends know how to show."""
        for code, (times, strongest) in self._found.items():
            if strongest > Action.ALLOW:
                self.span.add_event(semconv.EVALUATION_RESULT, {
                    semconv.EVALUATION_NAME: f"agentguard.{code}",
                    semconv.EVALUATION_SCORE: float(times),
                    semconv.EVALUATION_LABEL: _WORDS[strongest],
                    semconv.EVALUATION_EXPLANATION: f"found {times} times; at the most it asked to {_WORDS[strongest]}",
                })  # fmt: skip

    def _finish(
        self, ending: Ending, outcome: bool | None, steps: int, halt_code: str | None, usage: Usage | None
    ) -> None:
        self.span.set_attributes(_without_none({
            semconv.RUN_ENDING: str(ending),
            semconv.RUN_OUTCOME: outcome,
            semconv.RUN_STEPS: steps,
            semconv.RUN_REFUSED: self._refusals,
            semconv.RUN_HALT_CODE: halt_code,
            semconv.RUN_INPUT_TOKENS: usage.input_tokens if usage else None,
            semconv.RUN_OUTPUT_TOKENS: usage.output_tokens if usage else None,
            semconv.RUN_CACHED_TOKENS: usage.cached_tokens if usage else None,
            semconv.RUN_COST_USD: float(usage.cost_usd) if usage and usage.cost_usd is not None else None,
        }))  # fmt: skip
        if self.fills_panes:
            told = {"ending": str(ending), "halt_code": halt_code, "outcome": outcome, "steps": steps}
            self.span.set_attributes({
                semconv.OI_OUTPUT_VALUE: self.writer.content.as_json(_without_none(told)),
                semconv.OI_OUTPUT_MIME: "application/json",
            })  # fmt: skip
        if ending in (Ending.HALTED, Ending.FAILED):
            self.span.set_status(Status(StatusCode.ERROR, f"{ending}: {halt_code}" if halt_code else str(ending)))


class CallSpan:
    """The span of a call that runs."""

    __slots__ = ("_owned", "_run", "_token", "span")

    def __init__(self, run: RunSpan, span: Span, *, owned: bool) -> None:
        self._run = run
        self.span = span
        self._owned = owned
        self._token: Any = None

    @property
    def ids(self) -> dict[str, str]:
        """Trace and span id in hex, for logs."""
        context = self.span.get_span_context()
        return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}

    def attach(self) -> None:
        """Make it current, while the tool's own code runs."""
        if self._owned and self._token is None:
            self._token = otel_context.attach(trace.set_span_in_context(self.span))

    def detach(self) -> None:
        """Make current what was before."""
        token, self._token = self._token, None
        if token is not None:
            otel_context.detach(token)

    def end(self, result: ToolResult | str | None, token: Token, error: BaseException | None) -> None:
        """Say what came back and end the span. `token` is what stands for the result when results are compared."""
        self.detach()
        try:
            if not isinstance(token, Outcome):
                self.span.set_attribute(semconv.RESULT_FINGERPRINT, self._digest(token))
            if self._run.captures and result is not None:
                self._add_result(result.content if isinstance(result, ToolResult) else result)
            if isinstance(error, GeneratorExit):  # its reader closed the stream early
                error = None
            if error is not None or (isinstance(result, ToolResult) and result.is_error):
                self._add_error(error)
            if self._owned:
                self.span.end()
        except Exception as fault:
            self._run.writer.failed("end", fault)

    def _digest(self, token: str | bytes) -> str:
        """Digest the normalised result, so that who reads the span sees the equality that the guard saw."""
        data = normalised(token).encode("utf-8", "surrogatepass") if isinstance(token, str) else token
        return self._run.digest(data)

    def _add_result(self, content: Any) -> None:
        written = self._run.writer.content.written(content)
        attributes: dict[str, Any] = {semconv.TOOL_CALL_RESULT: written.json, **_alterations(written)}
        if self._run.writer.openinference:
            attributes[semconv.OI_OUTPUT_VALUE] = attributes[semconv.TOOL_CALL_RESULT]
            attributes[semconv.OI_OUTPUT_MIME] = "application/json"
        self.span.set_attributes(attributes)

    def _add_error(self, error: BaseException | None) -> None:
        name = "tool_error" if error is None else _qualified(type(error))
        self.span.set_attribute(semconv.ERROR_TYPE, name)
        self.span.set_status(_error(name))


_WORDS = {action: action.word for action in Action}


@functools.lru_cache(maxsize=1_024)
def _error(description: str) -> Status:
    """Return the status of an error; one that loops says the same every time."""
    return Status(StatusCode.ERROR, description)


def _context_or(context: Context | None) -> Context | None:
    """Return None, for the current context, where a span is current; in a thread without one return `context`."""
    return None if trace.get_current_span().get_span_context().is_valid else context


def _encodable(name: str) -> str:
    """Return a name as exporters can encode it: a lone surrogate would cost them the whole batch."""
    return name.encode("utf-8", "replace").decode()


def _alterations(written: Redacted) -> dict[str, bool]:
    said = {semconv.CONTENT_TRUNCATED: True} if written.cut else {}
    return {**said, semconv.CONTENT_REDACTED: True} if written.secrets else said


def _budget(ledger: Ledger) -> dict[str, float]:
    """Return limit and use of every ceiling of the run; those for single tools would make too many attributes."""
    told: dict[str, float] = {}
    for kind in Kind:
        limit = getattr(ledger.budget, kind)
        if kind is not Kind.CALLS_PER_TOOL and limit is not None:
            told[semconv.BUDGET_LIMIT.format(kind=kind)] = float(limit)
            told[semconv.BUDGET_USED.format(kind=kind)] = float(getattr(ledger, kind))
    return told


def _is_open(span: Span, *operations: str) -> bool:
    """Whether a span that a framework opened does one of these, and is not taken by another run already."""
    if not span.is_recording():
        return False
    attributes = _attributes_of(span)
    return attributes.get(semconv.OPERATION_NAME) in operations and semconv.RUN_ID not in attributes


def _is_open_tool(span: Span, tool: str) -> bool:
    if not span.is_recording():
        return False
    attributes = _attributes_of(span)
    marked = attributes.get(semconv.OPERATION_NAME) == semconv.EXECUTE_TOOL
    marked = marked or attributes.get(semconv.MCP_METHOD) == semconv.MCP_TOOLS_CALL
    return marked and attributes.get(semconv.TOOL_NAME) == tool and semconv.CALL_SEQ not in attributes


def _attributes_of(span: Span) -> Mapping[str, Any]:
    return getattr(span, "attributes", None) or {}  # the SDK's span has them, the API's has not


def _qualified(kind: type[BaseException]) -> str:
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _without_none(attributes: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None}


def _said(name: str) -> str | None:
    return None if name == UNKNOWN else name
