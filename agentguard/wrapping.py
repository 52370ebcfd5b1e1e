"""Wrappers around dispatchers and tools: the same signature, exceptions and results, with every call judged.

What is handed out is a `wrapt` proxy, so signature, type hints, `iscoroutinefunction` and attributes stay those of the
wrapped function; unlike wrapt's own it can be copied and deep-copied, which frameworks do with tools.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from functools import partial
from typing import Any, Protocol, SupportsIndex, TypeVar, cast

import orjson
import wrapt

from agentguard.attempt import Attempt
from agentguard.call import ToolCall
from agentguard.decision import Decision

F = TypeVar("F", bound=Callable[..., Any])
Bind = Callable[[tuple[Any, ...], Mapping[str, Any]], ToolCall]

_PLAIN = frozenset({str, dict, list, int, float, bool, bytes, tuple, type(None)})
"""Types of results that are neither awaitable nor lazy; most results are one of them."""
_NAMES = ("name", "tool_name", "tool", "function_name")
_ARGUMENTS = ("arguments", "args", "tool_args", "tool_input", "input", "parameters", "params", "kwargs")


class Feedback(str):
    """The result that stands for a refused call. Text for the model; `decision` says why.

    Awaiting it gives it back, for dispatchers that return an awaitable without being coroutine functions.
    """

    decision: Decision

    def __new__(cls, text: str, decision: Decision) -> Feedback:
        """Return the text with its decision."""
        self = super().__new__(cls, text)
        self.decision = decision
        return self

    def __await__(self) -> Generator[Any, Any, Feedback]:
        return self
        yield

    def __reduce__(self) -> tuple[Any, ...]:
        return (str, (str(self),))


class Judge(Protocol):
    """The part of a run that wrappers use."""

    def begin(self, call: ToolCall) -> Attempt:
        """Judge a call; raise RunHalted when the run ends here. A call that may run has its span made current."""
        ...

    async def begin_async(self, call: ToolCall) -> Attempt:
        """As `begin`, awaiting an asynchronous approval."""
        ...

    def seconds_left(self, attempt: Attempt) -> float | None:
        """Seconds that the call may take; None means no deadline."""
        ...

    def returned(self, attempt: Attempt, value: Any) -> Any:
        """Record what the tool gave back; return what the caller gets."""
        ...

    def streamed(self, attempt: Attempt, digest: bytes, items: int) -> None:
        """Record that a lazy result was used up."""
        ...

    def raised(self, attempt: Attempt, error: BaseException) -> None:
        """Record what the tool raised."""
        ...

    def cut(self, attempt: Attempt) -> Feedback:
        """Record that the call was cut at its deadline; return what the caller gets, or raise RunHalted."""
        ...

    def absorb(self, attempt: Attempt, item: Any, digest: bytes) -> bytes:
        """Return the digest of a stream with one more item."""
        ...


class GuardedFunction(wrapt.FunctionWrapper):  # type: ignore[type-arg] # generic in its stubs only
    """What `Run.wrap` and `Run.tool` hand out. A copy wraps a copy of the function under the same run."""

    def __copy__(self) -> GuardedFunction:
        return GuardedFunction(copy.copy(_inside(self)), _wrapper_of(self))

    def __deepcopy__(self, memo: dict[int, Any]) -> GuardedFunction:
        return GuardedFunction(copy.deepcopy(_inside(self), memo), _wrapper_of(self))

    def __reduce_ex__(self, protocol: SupportsIndex) -> Any:
        # A run lives in one process: what travels to another is the function without its guard.
        return copy.copy, (_inside(self),)


def _inside(proxy: Any) -> Callable[..., Any]:
    return proxy.__wrapped__  # type: ignore[no-any-return]


def _wrapper_of(proxy: Any) -> Any:
    return proxy._self_wrapper  # wrapt's documented name for what belongs to the proxy itself


def guarded_dispatcher(
    judge: Judge, dispatcher: F, *, is_async: bool | None, name: str | None, arguments: str | None
) -> F:
    """Wrap `dispatch(name, arguments)`; which parameter is which is found by its signature."""
    return _wrapped(judge, dispatcher, bind_dispatch(dispatcher, name=name, arguments=arguments), is_async=is_async)


def guarded_tool(judge: Judge, function: F, *, name: str, is_async: bool | None) -> F:
    """Wrap one function whose parameters are the arguments of the tool."""
    return _wrapped(judge, function, bind_function(function, name), is_async=is_async)


def bind_dispatch(dispatcher: Callable[..., Any], *, name: str | None = None, arguments: str | None = None) -> Bind:
    """Return a function from the dispatcher's own arguments to the call they mean.

    Raises TypeError when the signature has no two parameters that can be name and arguments.
    """
    parameters = list(inspect.signature(dispatcher).parameters)
    name_key = name or next((p for p in _NAMES if p in parameters), parameters[0] if parameters else None)
    rest = [p for p in parameters if p != name_key]
    arguments_key = arguments or next((p for p in _ARGUMENTS if p in rest), rest[0] if rest else None)
    if name_key not in parameters or arguments_key not in parameters:
        raise TypeError(f"{dispatcher!r} takes no tool name and arguments; name them: wrap(f, name=..., arguments=...)")
    name_at, arguments_at = parameters.index(name_key), parameters.index(arguments_key)

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
        given = len(args)
        tool = args[name_at] if name_at < given else kwargs.get(name_key)
        value = args[arguments_at] if arguments_at < given else kwargs.get(arguments_key, {})
        return to_call(tool, value)

    return bind


def bind_function(function: Callable[..., Any], name: str) -> Bind:
    """Return a function from a tool's own arguments to the call they mean."""
    signature = inspect.signature(function)
    kinds = [p.kind for p in signature.parameters.values()]
    names = list(signature.parameters)
    simple = all(kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for kind in kinds)

    def bind(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> ToolCall:
        if simple or not args:
            return ToolCall(name, {**dict(zip(names, args, strict=False)), **kwargs} if args else kwargs)
        try:
            return ToolCall(name, dict(signature.bind_partial(*args, **kwargs).arguments))
        except TypeError:  # the call itself will raise it, as it would without a guard
            return ToolCall(name, {"args": args, **kwargs})

    return bind


def to_call(name: Any, arguments: Any, call_id: str | None = None) -> ToolCall:
    """Return the call that a model's name and arguments mean; arguments may be JSON text.

    >>> to_call("page", '{"n": 1}')
    ToolCall(name='page', arguments={'n': 1}, id=None, raw_arguments=None)
    >>> to_call("page", '{"n": ').raw_arguments
    '{"n": '
    """
    tool = name if type(name) is str else _as_text(name)
    if isinstance(arguments, Mapping):
        return ToolCall(tool, cast("Mapping[str, Any]", arguments), call_id)
    if arguments is None or (isinstance(arguments, str) and not arguments):
        return ToolCall(tool, {}, call_id)
    if not isinstance(arguments, (str, bytes, bytearray)):
        return ToolCall(tool, {"": arguments}, call_id)
    try:
        parsed = orjson.loads(arguments)
    except (orjson.JSONDecodeError, RecursionError):
        parsed = None
    text = arguments if isinstance(arguments, str) else bytes(arguments).decode("utf-8", "replace")
    if isinstance(parsed, dict):
        return ToolCall(tool, cast("dict[str, Any]", parsed), call_id)
    return ToolCall(tool, None, call_id, text)


def _as_text(name: Any) -> str:
    try:
        return str(name)
    except Exception:  # a name that cannot be printed is no tool's
        return f"<{type(name).__name__}>"


def _wrapped(judge: Judge, function: F, bind: Bind, *, is_async: bool | None) -> F:
    if inspect.isasyncgenfunction(function):
        wrapper: Callable[..., Any] = _async_generator(judge, bind)
    elif inspect.isgeneratorfunction(function):
        wrapper = _generator(judge, bind)
    elif is_async or (is_async is None and inspect.iscoroutinefunction(function)):
        wrapper = _coroutine(judge, bind)
    else:
        wrapper = _plain(judge, bind)
    return GuardedFunction(function, wrapper)  # type: ignore[return-value]


def _plain(judge: Judge, bind: Bind) -> Callable[..., Any]:
    begin, returned = judge.begin, judge.returned

    def call_tool(wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        attempt = begin(bind(args, kwargs))
        if attempt.feedback is not None:
            return attempt.feedback
        if attempt.inner:
            return wrapped(*args, **kwargs)
        try:
            value = wrapped(*args, **kwargs)
        except BaseException as error:
            judge.raised(attempt, error)
            raise
        if type(value) in _PLAIN:
            return returned(attempt, value)
        return _of_any_kind(judge, attempt, value)

    return call_tool


def _of_any_kind(judge: Judge, attempt: Attempt, value: Any) -> Any:
    if inspect.isawaitable(value):
        attempt.leave_context()
        return _awaited(judge, attempt, value)
    if inspect.isgenerator(value):
        attempt.leave_context()
        return _drain(judge, attempt, value)
    if inspect.isasyncgen(value):
        attempt.leave_context()
        return _drain_async(judge, partial(_begun, attempt), lambda: value)
    return judge.returned(attempt, value)


async def _begun(attempt: Attempt) -> Attempt:
    return attempt


def _coroutine(judge: Judge, bind: Bind) -> Callable[..., Any]:
    async def call_tool(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        attempt = await judge.begin_async(bind(args, kwargs))
        if attempt.feedback is not None:
            return attempt.feedback
        if attempt.inner:
            return await wrapped(*args, **kwargs)
        return await _finished(judge, attempt, lambda: wrapped(*args, **kwargs))

    return call_tool


async def _awaited(judge: Judge, attempt: Attempt, value: Awaitable[Any]) -> Any:
    attempt.enter_context()
    return await _finished(judge, attempt, lambda: value)


async def _finished(judge: Judge, attempt: Attempt, start: Callable[[], Awaitable[Any]]) -> Any:
    left = judge.seconds_left(attempt)
    limit = asyncio.timeout(left) if left is not None else None
    try:
        if limit is None:
            value = await start()
        else:
            async with limit:
                value = await start()
    except BaseException as error:
        if limit is not None and limit.expired() and isinstance(error, TimeoutError):
            return judge.cut(attempt)
        judge.raised(attempt, error)
        raise
    return judge.returned(attempt, value)


def _generator(judge: Judge, bind: Bind) -> Callable[..., Any]:
    def call_tool(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Generator[Any, Any, Any]:
        attempt = judge.begin(bind(args, kwargs))
        if attempt.feedback is not None:
            yield attempt.feedback
            return None
        if attempt.inner:
            source: Generator[Any, Any, Any] = wrapped(*args, **kwargs)
            return (yield from source)
        attempt.leave_context()
        return (yield from _drain(judge, attempt, wrapped(*args, **kwargs)))

    return call_tool


def _returned(end: StopIteration) -> Any:
    value: Any = end.value
    return value


def _drain(judge: Judge, attempt: Attempt, source: Generator[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """Pass a generator through, step by step; the call's span is current only while the tool's own code runs."""
    digest, items = b"", 0
    step: Callable[[], Any] = source.__next__
    while True:
        attempt.enter_context()
        try:
            item = step()
        except StopIteration as end:
            judge.streamed(attempt, digest, items)
            return _returned(end)
        except BaseException as error:
            judge.raised(attempt, error)
            raise
        attempt.leave_context()
        digest, items = judge.absorb(attempt, item, digest), items + 1
        try:
            sent = yield item
        except GeneratorExit:
            source.close()
            judge.raised(attempt, GeneratorExit())
            raise
        except BaseException as error:
            step = partial(source.throw, error)
        else:
            step = partial(source.send, sent)


def _async_generator(judge: Judge, bind: Bind) -> Callable[..., Any]:
    def call_tool(
        wrapped: Callable[..., Any], instance: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> AsyncGenerator[Any, Any]:
        async def admit() -> Attempt:
            attempt = await judge.begin_async(bind(args, kwargs))
            attempt.leave_context()
            return attempt

        return _drain_async(judge, admit, lambda: wrapped(*args, **kwargs))

    return call_tool


async def _drain_async(
    judge: Judge, admit: Callable[[], Awaitable[Attempt]], start: Callable[[], AsyncGenerator[Any, Any]]
) -> AsyncGenerator[Any, Any]:
    """As `_drain`, for an asynchronous generator that is judged when its first item is asked for."""
    attempt = await admit()
    if attempt.feedback is not None:
        yield attempt.feedback
        return
    source = start()
    if attempt.inner:
        async for item in source:
            yield item
        return
    digest, items = b"", 0
    step: Callable[[], Awaitable[Any]] = source.__anext__
    while True:
        attempt.enter_context()
        try:
            item = await step()
        except StopAsyncIteration:
            judge.streamed(attempt, digest, items)
            return
        except BaseException as error:
            judge.raised(attempt, error)
            raise
        attempt.leave_context()
        digest, items = judge.absorb(attempt, item, digest), items + 1
        try:
            sent = yield item
        except GeneratorExit:
            await source.aclose()
            judge.raised(attempt, GeneratorExit())
            raise
        except BaseException as error:
            step = partial(source.athrow, error)
        else:
            step = partial(source.asend, sent)
