"""Taking in what calls gave back: what a value is read as, what is kept of it, and what it settles."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, Final

import msgspec
import xxhash

from agentguard.attempt import Attempt
from agentguard.call import ToolResult
from agentguard.fingerprint import canonical, normalised
from agentguard.layers import come_out
from agentguard.ledger import Ledger
from agentguard.loops import UNKNOWN, Token
from agentguard.past import RunPast

if TYPE_CHECKING:
    from agentguard.guard import Guard

_KEPT_CHARS: Final = 2_000
"""Text of a result that is kept for the run's trajectory; loops are judged on the whole."""
_LONGEST_TOKEN: Final = 65_536
"""Longer results are remembered by their digest."""
_EMPTY: Final[tuple[Any, ...]] = (None, "", b"", [], {}, ())


class Back(msgspec.Struct, frozen=True):
    """What a call came back with."""

    kept: ToolResult | None
    """The result as the trajectory keeps it. None when there is none: the call was cancelled."""
    token: Token
    """What stands for it when results are compared."""
    whole: ToolResult | None = None
    """The uncut result, for the span: what is cut before secrets are looked for may end in half of one."""
    error: Token | None = None
    """What stands for its text where it is a failure; None where it is none."""
    raised: BaseException | None = None
    """What the tool raised; None when it did not."""
    cut: bool = False
    """Whether the call was cut at its deadline, so that nobody knows whether it took effect."""


class Results:
    """What the calls of one run gave back. Safe under threads; never raises."""

    def __init__(self, guard: Guard, ledger: Ledger, past: RunPast) -> None:
        self._read = guard.as_result
        self._fault = guard.fault
        self._ordered = guard.ordered
        self._plan = guard.plan
        self._lock = ledger.lock
        self._past = past

    def returned(self, attempt: Attempt, value: Any) -> None:
        """Take in what a tool returned. Most of it is a short text, which is remembered as it is."""
        if type(value) is not str or attempt.watched or len(value) > _KEPT_CHARS:
            self.came(attempt, self._observed(attempt, value))
            return
        attempt.result = value
        with self._lock:
            attempt.home.leave(attempt.place, value)  # type: ignore[union-attr] # outside every lane is watched
        span = attempt.span
        if span is not None:
            attempt.span = None  # the history would keep every span alive otherwise
            span.end(value, value, None)

    def unknown(self, attempt: Attempt) -> None:
        """Take in that a call came back with nobody knows what."""
        self.came(attempt, Back(None, UNKNOWN))

    def streamed(self, attempt: Attempt, digest: bytes, items: int) -> None:
        """Take in that a lazy result of so many items was used up."""
        self.came(attempt, Back(ToolResult(f"stream of {items} items"), digest))

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """Take in what a tool raised. Only an `Exception` is a failure; anything else ends the call from outside."""
        if not isinstance(error, Exception):
            self.came(attempt, Back(None, UNKNOWN, raised=error))
            return
        text = f"{type(error).__name__}: {_text_of(error)}"
        kept, token = ToolResult(text[:_KEPT_CHARS], True), _token("!" + text)
        self.came(attempt, Back(kept, token, ToolResult(text, True), token, error))

    def cut(self, attempt: Attempt, code: str, feedback: str | None) -> None:
        """Take in that a call was cut at its deadline; nobody knows whether it took effect."""
        self.came(attempt, Back(ToolResult(feedback, True), "!" + code, error="!" + code, cut=True))

    def came(self, attempt: Attempt, back: Back) -> None:
        """Settle a call with what it came back with."""
        attempt.result = back.kept
        come_out(attempt)
        with self._lock:
            if attempt.home is not None:
                attempt.home.leave(attempt.place, back.token, back.error)
            if attempt.started_at is not None:
                attempt.ended_at = time.time_ns()
                self._note_time(attempt)
            if back.error is not None or back.raised is not None:
                self._settle_trouble(attempt, back)
            elif attempt.call.name in self._ordered:
                self._past.add_success(attempt.call.name, attempt.call.arguments or {})
        span, attempt.span = attempt.span, None
        if span is not None:
            span.end(back.whole or back.kept, back.token, back.raised)

    def _observed(self, attempt: Attempt, value: Any) -> Back:
        try:
            return self._seen(attempt, value)
        except Exception as fault:
            self._fault("result", fault)
            return Back(ToolResult(None), UNKNOWN)

    def _seen(self, attempt: Attempt, value: Any) -> Back:
        whole = self._as_result(value)
        text = whole.content if type(whole.content) is str else canonical(whole.content).decode("utf-8", "replace")
        if attempt.tool.empty_is_error and not whole.is_error and whole.content in _EMPTY:
            whole, text = ToolResult("empty result", True), "empty result"
        if attempt.tool.normalize is not None:
            text = attempt.tool.normalize(text)
        kept = ToolResult(text[:_KEPT_CHARS], whole.is_error) if len(text) > _KEPT_CHARS else whole
        token = _token("!" + text if whole.is_error else text)
        return Back(kept, token, whole, token if whole.is_error else None)

    def _as_result(self, value: Any) -> ToolResult:
        if isinstance(value, ToolResult):
            return value
        return ToolResult(value) if self._read is None else self._read(value)

    def _settle_trouble(self, attempt: Attempt, back: Back) -> None:
        """Settle what a call held that did not just succeed. A cancelled call is not charged, an unread stream is."""
        if not attempt.holds:
            return
        if back.cut:
            attempt.ledger.add_unresolved()
        if back.raised is None or isinstance(back.raised, Exception):
            attempt.ledger.add_failure()
        elif not isinstance(back.raised, GeneratorExit):
            attempt.ledger.give_back(self._plan(attempt.call.name).charge)

    def _note_time(self, attempt: Attempt) -> None:
        tool = attempt.tool
        if tool.poll is not None:
            self._past.add_answer(attempt.lane)
        if tool.deadline is not None and attempt.started_at is not None and attempt.ended_at is not None:
            seconds = (attempt.ended_at - attempt.started_at) / 1e9
            self._past.set_overrun(tool.name, seconds if seconds > tool.deadline else None)


def _token(text: str) -> Token:
    if len(text) <= _LONGEST_TOKEN:
        return text
    return xxhash.xxh3_128_digest(normalised(text).encode("utf-8", "surrogatepass"))


def _text_of(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a tool's exception may not even print
        return "<no text>"
