"""A run gathered from its messages: the turns of the model, the results by call id, and how it ended."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from agentguard.call import ToolCall, ToolResult, Usage
from agentguard.traces.arguments import decode
from agentguard.traces.convention import Answered, Asked
from agentguard.traces.endings import ANSWER_TOOLS
from agentguard.traces.messages import calls_in, results_in, text_in
from agentguard.traces.results import decode_result
from agentguard.traces.shapes import is_object, whole
from agentguard.traces.steps import DOUBTFUL
from agentguard.traces.tools import Tools
from agentguard.traces.values import listed, string
from agentguard.trajectory import MAIN_LANE, Ending, Step

_MODEL: Final = frozenset({"assistant", "ai", "model", "AIMessage", "AIMessageChunk"})
_ANSWERS: Final = frozenset({"tool", "function", "ToolMessage", "function_call_output", "tool_result"})


class _Call:
    """One call and what became of it."""

    __slots__ = ("answer", "asked", "at", "ended", "executed", "lane", "turn", "user_turn")

    def __init__(self, asked: Asked, turn: int, lane: str, at: int | None, user_turn: bool) -> None:
        self.asked = asked
        self.turn = turn
        self.lane = lane
        self.at = at
        self.ended: int | None = None
        self.answer: Answered | None = None
        self.executed: bool | None = None
        self.user_turn = user_turn


class Conversation:
    """Takes messages or events in their order."""

    def __init__(self, tools: Tools | None = None) -> None:
        self.tools: Tools = tools or {}
        """What the model was given. Empty when not recorded."""
        self._calls: list[_Call] = []
        self._open: dict[int, _Call] = {}
        self._asked: dict[str, list[_Call]] = {}
        self._last: dict[str, _Call] = {}
        self._turns: dict[str, int] = {}
        self._count = 0
        self._user_turn: set[str] = set()
        self._closed = False
        self._open_items = False

    # --- as events -------------------------------------------------------------------------------------------------

    def ask(
        self, calls: list[Asked], *, at: int | None = None, lane: str = MAIN_LANE, request: str | None = None
    ) -> None:
        """Take the calls of one model turn. Those of the same `request` are one turn, however often it is told of."""
        turn = self._turns.get(request) if request is not None else None
        if turn is None:
            self._count += 1
            turn = self._count
            if request is not None:
                self._turns[request] = turn
        user_turn = lane in self._user_turn
        self._user_turn.discard(lane)
        for asked in calls:
            before = self._asked.get(asked.id, ()) if asked.id is not None else ()
            if before and before[-1].turn == turn:
                continue  # told of twice
            self._add(_Call(asked, turn, lane, at, user_turn))
        if lane == MAIN_LANE:
            self._closed = False

    def _add(self, call: _Call) -> None:
        self._open[id(call)] = call
        self._calls.append(call)
        self._last[call.lane] = call
        if call.asked.id is not None:
            self._asked.setdefault(call.asked.id, []).append(call)

    def answer(
        self,
        call_id: str | None,
        answered: Answered,
        *,
        name: str | None = None,
        started: int | None = None,
        at: int | None = None,
        executed: bool | None = None,
    ) -> None:
        """Take a result; without an id it is that of the first open call of this name, or of any name."""
        call = self._waiting(call_id, name)
        if call is None:
            return
        call.answer = answered
        call.at = call.at if started is None else started
        call.ended = at
        call.executed = executed

    def knows(self, call_id: str) -> bool:
        """Whether a call of this id was asked for."""
        return call_id in self._asked

    def close(self, *, lane: str = MAIN_LANE) -> None:
        """Take note that the model spoke without asking for a call."""
        self._closed = self._closed or lane == MAIN_LANE

    def user(self, *, announced: bool = False, lane: str = MAIN_LANE) -> None:
        """Take note of a user's message. `announced`: it is known to come from a person, not from a harness."""
        self._closed = False
        self._open_items = False
        if announced:
            self._user_turn.add(lane)

    def _waiting(self, call_id: str | None, name: str | None) -> _Call | None:
        if call_id is not None:
            # ids may come again in a long conversation: the newest call is meant
            found = next(reversed(self._asked.get(call_id, ())), None)
        else:
            found = next((call for call in self._open.values() if name is None or call.asked.name == name), None)
        return found if found is not None and self._open.pop(id(found), None) is not None else None

    # --- as messages -----------------------------------------------------------------------------------------------

    def tell(self, message: Any, *, at: int | None = None, source: str = "messages") -> None:
        """Take one message of any provider's."""
        if not is_object(message):
            return
        inner = message.get("data")
        if is_object(inner) and "role" not in message:  # as LangChain stores its messages
            message = {**inner, "type": message.get("type")}
        kind = string(message.get("role", message.get("type")))
        if kind in ("function_call", "tool_call") and "role" not in message:
            self._item(message, at, source)
            return
        answers = list(results_in([message]))
        for call_id, answered in answers:
            self.answer(call_id, _with_error(message, answered), at=at)
        named = list(_answers_by_name(message)) if not answers else []
        if answers or named:
            self._open_items = False
        for name, answered in named:
            self.answer(None, answered, name=name, at=at)
        if kind in _MODEL:
            self._model(message, at, source)
        elif kind in ("user", "human") and not answers and not named:
            self.user()

    def _item(self, item: Mapping[str, Any], at: int | None, source: str) -> None:
        # calls of one response stand one after another, each an item of its own
        if not self._open_items:
            self._turns.pop("items", None)
        self.ask(calls_in([item], source), at=at, request="items")
        self._open_items = True

    def _model(self, message: Mapping[str, Any], at: int | None, source: str) -> None:
        calls = _calls(message, source)
        self._open_items = False
        if calls:
            self.ask(calls, at=at)
        elif text_in(message) is not None:
            self.close()

    # --- and out ---------------------------------------------------------------------------------------------------

    def steps(self) -> tuple[Step, ...]:
        """Return the calls in the order asked."""
        return tuple(_step(call, self.tools) for call in self._calls)

    def ending(self) -> tuple[Ending, str | None]:
        """Return how the conversation ends, and why that is said."""
        last = self._last.get(MAIN_LANE)
        if self._closed or (last is not None and last.asked.name in ANSWER_TOOLS):
            return Ending.FINISHED, None
        if last is None:
            return Ending.UNFINISHED, "the model said nothing"
        return Ending.UNFINISHED, "the conversation breaks off: the model did not speak after its last call"


def _calls(message: Mapping[str, Any], source: str) -> list[Asked]:
    calls = calls_in(dict(message), source)
    if calls:
        return calls
    # Inspect and older interfaces name the function by a text
    flat = [each for each in listed(message.get("tool_calls")) if is_object(each)]
    return [
        Asked(_text(each.get("id")), name, each.get("arguments"), source)
        for each in flat
        if (name := _text(each.get("function")) or _text(each.get("name"))) is not None
    ]


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


def _with_error(message: Mapping[str, Any], answered: Answered) -> Answered:
    error = message.get("error")
    if not error:
        return answered
    told = error.get("message") if is_object(error) else error
    return Answered(answered.content or told, is_error=True)


def _answers_by_name(message: Mapping[str, Any]) -> list[tuple[str | None, Answered]]:
    if string(message.get("role", message.get("type"))) in _ANSWERS and "content" in message:
        return [(_text(message.get("name")), Answered(message["content"], is_error=False))]
    found: list[tuple[str | None, Answered]] = []
    for part in listed(message.get("parts")):
        response = part.get("functionResponse", part.get("function_response")) if is_object(part) else None
        if is_object(response):
            found.append((_text(response.get("name")), Answered(response.get("response"), is_error=False)))
    return found


def _step(call: _Call, tools: Tools) -> Step:
    arguments = decode(call.asked.arguments, tools.get(call.asked.name))
    result = _result(call.answer)
    missing = ("arguments",) if arguments.named is None and arguments.raw is None else ()
    return Step(
        call=ToolCall(
            call.asked.name, arguments.named, call.asked.id, arguments.raw if arguments.named is None else None
        ),
        result=result,
        executed=_executed(call, result, tools),
        started_at=call.at,
        ended_at=call.ended,
        turn=call.turn,
        lane=call.lane,
        user_turn=call.user_turn,
        missing=missing if result is not None else (*missing, "result"),
    )


def _result(answer: Answered | None) -> ToolResult | None:
    if answer is None:
        return None
    outcome = decode_result(answer.content)
    return ToolResult(outcome.content, answer.is_error or outcome.is_error)


def _executed(call: _Call, result: ToolResult | None, tools: Tools) -> bool | None:
    """A conversation tells results, not what ran: an unknown tool did not, and an error may be a refusal."""
    if call.executed is not None:
        return call.executed
    if tools and call.asked.name not in tools:
        return False
    if result is None:
        return None
    if not result.is_error:
        return True
    return None if DOUBTFUL.search(str(result.content)) else True


def usage_of(
    read: Any, written: Any, cached: Any = None, cost: Any = None, *, besides: tuple[Any, ...] = ()
) -> Usage | None:
    """Return counted tokens; `besides` are input tokens that `read` leaves out. None when nothing was counted."""
    counted = whole(read)
    more = [count for each in besides if (count := whole(each)) is not None]
    if counted is None and whole(written) is None and cost is None:
        return None
    return Usage(
        None if counted is None else counted + sum(more),
        whole(written),
        whole(cached),
        Decimal(str(cost)) if isinstance(cost, (int, float)) and not isinstance(cost, bool) else None,
    )


def total(parts: list[Usage]) -> Usage | None:
    """Return the sum of what was counted. None when nothing was."""
    if not parts:
        return None
    costs = [each.cost_usd for each in parts if each.cost_usd is not None]
    return Usage(
        _sum([each.input_tokens for each in parts]),
        _sum([each.output_tokens for each in parts]),
        _sum([each.cached_tokens for each in parts]),
        sum(costs, Decimal(0)) if len(costs) == len(parts) else None,
    )


def _sum(counts: list[int | None]) -> int | None:
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
