"""Joined calls of one lane as steps."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from agentguard import semconv
from agentguard.call import ToolCall, ToolResult
from agentguard.decision import ALLOWED, Action, Decision, Verdict
from agentguard.traces.arguments import NOTHING, Arguments, decode
from agentguard.traces.calls import failure, same_name
from agentguard.traces.convention import Role
from agentguard.traces.results import NOWHERE, Outcome, decode_result
from agentguard.traces.shapes import as_text, text, whole
from agentguard.trajectory import Step

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agentguard.traces.calls import Ran
    from agentguard.traces.convention import Answered
    from agentguard.traces.joining import Entry, Turn

_ACTIONS = {action.word: action for action in Action}
DOUBTFUL = re.compile(
    r"validat|argument|parameter|not found|unknown tool|no such tool|not a valid tool|not exist", re.IGNORECASE
)
"""Failures that may have come before the tool was entered."""

_UNTELLING = frozenset({"", "_OTHER", "TOOL_ERROR", "tool_error", "Exception", "Error", "error"})
"""Error types that say no more than that something failed."""


class Frame:
    """What the steps of a run share."""

    __slots__ = ("_history", "_read_history", "aliases", "any_ran", "declared", "why")

    def __init__(
        self,
        *,
        declared: Mapping[str, Mapping[str, Any]],
        any_ran: bool,
        aliases: Mapping[str, str],
        why: bool,
        history: Callable[[], dict[str, Answered]],
    ) -> None:
        self.declared = declared
        """Argument schemas by tool, as the model was given them. Empty when not recorded."""
        self.any_ran = any_ran
        """Whether the trace has tool spans at all."""
        self.aliases = aliases
        self.why = why
        self._read_history = history
        self._history: dict[str, Answered] | None = None

    @property
    def history(self) -> dict[str, Answered]:
        """Tool results by call id that later requests repeat."""
        if self._history is None:
            self._history = self._read_history()
        return self._history

    def is_declared(self, name: str) -> bool:
        """Whether the model was given such a tool, or nothing tells."""
        return not self.declared or any(same_name(name, each) for each in self.declared)


def steps_of(turn: Turn, number: int, lane: str, frame: Frame) -> list[Step]:
    """Return the steps of one turn, an attempt each."""
    steps: list[Step] = []
    for entry in turn.entries:
        if not entry.ran:
            steps.append(_never_ran(entry, turn, number, lane, frame))
        for attempt, ran in enumerate(entry.ran, 1):
            steps.append(_ran(entry, ran, turn, attempt, number, lane, frame))
    return steps


def _ran(entry: Entry, ran: Ran, turn: Turn, attempt: int, number: int, lane: str, frame: Frame) -> Step:
    arguments, from_model = _arguments(entry, ran, frame)
    call_id = entry.asked.id if entry.asked is not None and entry.asked.id is not None else ran.call_id
    outcome = ran.outcome()
    result = ToolResult(outcome.content, outcome.is_error) if outcome.recorded else None
    repeated = frame.history.get(call_id) if result is None and call_id is not None else None
    if repeated is not None:
        result = ToolResult(decode_result(repeated.content).content, repeated.is_error)
    name = frame.aliases.get(entry.name, entry.name)
    guard = ran.guard or _NO_GUARD
    return Step(
        call=ToolCall(name, arguments.named, call_id, arguments.raw if arguments.named is None else None),
        result=result,
        decision=_decision(ran) if ran.guard is not None else None,
        executed=_executed(ran, outcome, frame),
        started_at=ran.start,
        ended_at=ran.end,
        turn=number if (told := whole(guard.get(semconv.CALL_TURN))) is None else told,
        lane=text(guard.get(semconv.CALL_LANE)) or lane,
        seq=whole(guard.get(semconv.CALL_SEQ)),
        attempt=attempt,
        call_key=text(guard.get(semconv.CALL_FINGERPRINT)),
        result_key=text(guard.get(semconv.RESULT_FINGERPRINT)),
        user_turn=guard.get(semconv.CALL_USER_TURN) is True,
        origin=_origin(entry, ran, turn, from_model, _told_at(outcome)) if frame.why else None,
        missing=_missing(arguments, result, from_model=from_model),
    )


_NO_GUARD: Mapping[str, Any] = {}


def _never_ran(entry: Entry, turn: Turn, number: int, lane: str, frame: Frame) -> Step:
    arguments = _by_schema(entry.arguments, entry.name, frame)
    answered = frame.history.get(entry.asked.id) if entry.asked is not None and entry.asked.id is not None else None
    result = None if answered is None else ToolResult(decode_result(answered.content).content, answered.is_error)
    why = _container_failure(turn)
    if why is not None and (result is None or not result.is_error):
        result = ToolResult(result.content if result is not None else why, is_error=True)
    name = frame.aliases.get(entry.name, entry.name)
    return Step(
        call=ToolCall(
            name,
            arguments.named,
            entry.asked.id if entry.asked is not None else None,
            arguments.raw if arguments.named is None else None,
        ),
        result=result,
        executed=False if frame.any_ran or not frame.is_declared(entry.name) else None,
        turn=number,
        lane=lane,
        origin=_origin(entry, None, turn, True, "a later request" if answered is not None else "")
        if frame.why
        else None,
        missing=_missing(arguments, result, from_model=True),
    )


def _arguments(entry: Entry, ran: Ran, frame: Frame) -> tuple[Arguments, bool]:
    asked = entry.arguments if entry.asked is not None else NOTHING
    if asked.named is not None:
        return asked, True
    told = _unless_altered(ran.arguments, ran)
    if told.named is None and told.raw is not None:
        told = _by_schema(told, entry.name, frame)
    if told.named is not None or asked.raw is None:
        return told, False
    return asked, True


def _unless_altered(told: Arguments, ran: Ran) -> Arguments:
    """Return nothing for what a guard shortened or took secrets out of before it was written: it equals nothing now.

    The fingerprint is of the whole, so that loops are judged all the same.
    """
    guard = ran.guard
    if guard is None or not (guard.get(semconv.CONTENT_TRUNCATED) or guard.get(semconv.CONTENT_REDACTED)):
        return told
    return NOTHING if _MARKS.search(told.raw or as_text(told.named)) else told


_MARKS = re.compile(r"\[redacted\]|\[\.\.\. |\"\[[^\"]*\]\"")
"""What stands where something was taken out; the attribute alone may speak of the result."""


def _by_schema(arguments: Arguments, name: str, frame: Frame) -> Arguments:
    if arguments.named is not None or arguments.raw is None or not frame.declared:
        return arguments
    schema = frame.declared.get(name)
    return decode(arguments.raw, schema) if schema is not None else arguments


def _executed(ran: Ran, outcome: Outcome, frame: Frame) -> bool | None:
    error = outcome.error
    if ran.guard is not None:
        # a guard says so of the calls that it refused, and runs all others
        return ran.guard.get(semconv.CALL_EXECUTED) is not False
    if ran.refused:
        return False
    if error is None and outcome.is_error:
        error = outcome.content if isinstance(outcome.content, str) else ""
    if error is None:
        said = outcome.content if isinstance(outcome.content, str) else ""
        return None if said[:5].lower() == "error" and DOUBTFUL.search(said) else True
    if not frame.is_declared(ran.name):
        return False
    kind = ran.error_kind()
    return None if kind in _UNTELLING or DOUBTFUL.search(f"{kind} {error}") else True


def _container_failure(turn: Turn) -> str | None:
    # a framework that rejects a call may say so on the span around the model request only
    if turn.request is None or len(turn.entries) != 1:
        return None
    around = turn.request.parts[0].parent
    return failure(around) if around is not None and around.role is Role.CHAIN and around.parent is not None else None


def _missing(arguments: Arguments, result: ToolResult | None, *, from_model: bool) -> tuple[str, ...]:
    lost = arguments.named is None and not (from_model and arguments.raw is not None)
    if lost:
        return ("arguments", "result") if result is None else ("arguments",)
    return ("result",) if result is None else ()


def _origin(entry: Entry, ran: Ran | None, turn: Turn, from_model: bool, result: str) -> Mapping[str, str]:
    origin: dict[str, str] = {}
    asked = _asked_at(entry, turn)
    if asked:
        origin["name"] = asked
    elif ran is not None:
        origin["name"] = f"span {ran.span_id} {ran.named_by}"
    if from_model and asked:
        origin["arguments"] = asked
    elif ran is not None and ran.told_arguments()[1] != NOWHERE:
        origin["arguments"] = "span {} {}".format(*ran.told_arguments()[1])
    if result:
        origin["result"] = result
    return origin


def _told_at(outcome: Outcome) -> str:
    return "span {} {}".format(*outcome.source) if outcome.source != NOWHERE else ""


def _asked_at(entry: Entry, turn: Turn) -> str:
    if entry.asked is None:
        return ""
    return f"span {turn.request.span_id} {entry.asked.attribute}" if turn.request is not None else entry.asked.attribute


def _decision(ran: Ran) -> Decision | None:
    guard = ran.guard or _NO_GUARD
    if semconv.CALL_SEQ not in guard:
        return None
    # a guard leaves the usual unsaid: no action means that the call was allowed
    told = guard.get(semconv.CALL_ACTION)
    action = _ACTIONS.get(told, Action.ALLOW) if isinstance(told, str) else Action.ALLOW
    events = [event for part in ran.parts for event in part.span.events]
    verdicts = [_verdict(attributes) for name, _, attributes in events if name == semconv.VERDICT]
    if not verdicts and action is Action.ALLOW:
        return ALLOWED
    return Decision(action, tuple(sorted(verdicts, key=lambda each: -each.action)))


def _verdict(attributes: Mapping[str, Any]) -> Verdict:
    return Verdict(
        check=str(attributes.get(semconv.VERDICT_CHECK) or ""),
        code=str(attributes.get(semconv.VERDICT_CODE) or ""),
        action=_ACTIONS.get(str(attributes.get(semconv.VERDICT_ACTION)), Action.WARN),
        reason=str(attributes.get(semconv.VERDICT_REASON) or ""),
    )
