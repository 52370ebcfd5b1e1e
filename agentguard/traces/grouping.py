"""Spans of one trace, put in their tree, cut into runs and sorted into lanes."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from agentguard import semconv
from agentguard.traces.calls import Ran, same_name
from agentguard.traces.convention import Role
from agentguard.traces.reading import Reading, read
from agentguard.traces.requests import Request
from agentguard.traces.shapes import bare_name
from agentguard.trajectory import MAIN_LANE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from agentguard.traces.span import Span

_STRONG = frozenset({Role.AGENT, Role.WORKFLOW})
_CALLS = frozenset({Role.MODEL, Role.TOOL})


class Lane:
    """Requests and calls of one agent."""

    __slots__ = ("calls", "name", "requests")

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests: list[Request] = []
        self.calls: list[Ran] = []


class Fragment:
    """The readings of one trace that belong to one run."""

    __slots__ = ("lanes", "members", "root", "started", "tops", "trace_id")

    def __init__(self, trace_id: str, tops: list[Reading], root: Reading | None) -> None:
        self.trace_id = trace_id
        self.root = root
        """The outermost agent, workflow or chain span. None when none was recorded."""
        self.tops = tops
        """Readings that no other reading of the fragment encloses."""
        self.started: list[Reading] = []
        """Notes that the run began."""
        self.members: list[Reading] = []
        """Every reading, from the outside in."""
        self.lanes: dict[str, Lane] = {}

    @property
    def has_calls(self) -> bool:
        """Whether any model or tool span is here."""
        return any(lane.calls or lane.requests for lane in self.lanes.values())


def fragments(spans: Iterable[Span], trace_id: str) -> list[Fragment]:
    """Cut one trace into runs: one a run id of ours, one an outermost agent or workflow span, else the whole trace."""
    kept, parents = _readings(spans)
    tops = _apart(_link(kept, parents), kept)
    found = _by_run(tops, trace_id)
    for each in found:
        _sort_into_lanes(each)
    return [
        each
        for each in found
        if (each.root is not None and each.root.role in _STRONG) or each.has_calls or each.started
    ]


def _by_run(tops: list[Reading], trace_id: str) -> list[Fragment]:
    found: dict[str, Fragment] = {}
    loose: list[Reading] = []
    for top in sorted(tops, key=lambda each: each.role not in _STRONG):
        run_id = _run_id(top)
        if run_id is None and top.role not in _STRONG:
            loose.append(top)
            continue
        key = top.span.span_id if run_id is None else f"run {run_id}"
        home = found.setdefault(key, Fragment(trace_id, [], None))
        home.tops.append(top)
        if home.root is None and top.role in _STRONG:
            home.root = top
    if len(found) == 1:
        next(iter(found.values())).tops += loose
    elif loose:
        found[""] = Fragment(trace_id, loose, None)
    for each in found.values():
        each.root = each.root or _outermost_chain(each.tops)
    return list(found.values())


def _run_id(reading: Reading) -> str | None:
    value = reading.span.attributes.get(semconv.RUN_ID)
    return None if value is None else str(value)


def _apart(tops: list[Reading], kept: Mapping[str, Reading]) -> list[Reading]:
    """Take runs of ours that were started inside one another apart: each has its own id, and its own calls."""
    runs = {_run_id(each) for each in kept.values() if each.role in _STRONG or each.role is Role.STARTED}
    if len(runs - {None}) < 2:
        return tops
    found = tops.copy()
    stack = [(each, _run_id(each)) for each in tops]
    while stack:
        reading, run_id = stack.pop()
        within = [(child, _run_id(child) or run_id) for child in reading.children]
        stack += within
        reading.children = [child for child, its in within if run_id is None or its == run_id]
        for child, its in within:
            if run_id is not None and its != run_id:
                child.parent = None
                found.append(child)
    return found


def _readings(spans: Iterable[Span]) -> tuple[dict[str, Reading], dict[str, str | None]]:
    kept: dict[str, Reading] = {}
    parents: dict[str, str | None] = {}
    for span in spans:
        if span.span_id in parents:
            continue
        parents[span.span_id] = span.parent_id
        reading = read(span)
        if reading is not None and reading.role is not Role.OTHER and reading.role is not Role.SETUP:
            kept[span.span_id] = reading
    return kept, parents


def _link(kept: dict[str, Reading], parents: dict[str, str | None]) -> list[Reading]:
    nearest: dict[str, Reading | None] = {}
    for span_id, reading in kept.items():
        parent_id = parents[span_id]
        if parent_id is None:
            continue
        parent = kept.get(parent_id) or _nearest(parent_id, kept, parents, nearest)
        if parent is not None and parent is not reading:
            reading.parent = parent
            parent.children.append(reading)
    tops = [each for each in kept.values() if each.parent is None]
    _mark_enclosing(kept)
    deep = any(each.parent is not None and each.parent.parent is not None for each in kept.values())
    return _without_cycles(tops, kept) if deep or not tops else tops


def _mark_enclosing(kept: Mapping[str, Reading]) -> None:
    for reading in kept.values():
        above = reading.parent if reading.role is Role.TOOL else None
        while above is not None and not above.encloses_calls:
            above.encloses_calls = True
            above = above.parent


def _nearest(
    span_id: str | None,
    kept: Mapping[str, Reading],
    parents: Mapping[str, str | None],
    known: dict[str, Reading | None],
) -> Reading | None:
    path: list[str] = []
    found: Reading | None = None
    while span_id is not None:
        found = kept.get(span_id)
        if found is not None:
            break
        if span_id in known:
            found = known[span_id]
            break
        known[span_id] = None
        path.append(span_id)
        span_id = parents.get(span_id)
    for each in path:
        known[each] = found
    return found


def _without_cycles(tops: list[Reading], kept: Mapping[str, Reading]) -> list[Reading]:
    seen: set[int] = set()
    _mark(tops, seen)
    for reading in kept.values():
        if id(reading) not in seen:
            # parents that go round in a circle: cut where we stand
            if reading.parent is not None:
                reading.parent.children.remove(reading)
                reading.parent = None
            tops.append(reading)
            _mark([reading], seen)
    return tops


def _mark(start: list[Reading], seen: set[int]) -> None:
    stack = list(start)
    while stack:
        reading = stack.pop()
        if id(reading) not in seen:
            seen.add(id(reading))
            stack += reading.children


def _outermost_chain(tops: list[Reading]) -> Reading | None:
    chains = [each for each in tops if each.role is Role.CHAIN]
    return min(chains, key=_start) if chains else None


class _Place(NamedTuple):
    reading: Reading
    lane: str
    agent: str | None
    call: Ran | None
    request: Request | None


class _Names:
    """Lane names of one run: the first agent is the main one, a sub-agent called again gets a number."""

    def __init__(self) -> None:
        self.main: str | None = None
        self.used: dict[str, int] = {}

    def beside(self, name: str | None) -> str:
        """Return the lane of an agent that no other agent encloses."""
        if self.main is None or name is None or name == self.main:
            self.main = self.main or name
            return MAIN_LANE
        return name

    def below(self, name: str | None) -> str:
        """Return the lane of one invocation of a sub-agent."""
        name = name or "sub-agent"
        self.used[name] = count = self.used.get(name, 0) + 1
        return name if count == 1 else f"{name}#{count}"


def _sort_into_lanes(fragment: Fragment) -> None:
    names = _Names()
    stack = [_Place(each, MAIN_LANE, None, None, None) for each in sorted(fragment.tops, key=_start, reverse=True)]
    while stack:
        place = stack.pop()
        fragment.members.append(place.reading)
        place.reading.inside_call = place.call is not None
        if place.reading.role is Role.STARTED:
            fragment.started.append(place.reading)
        inside = _PLACERS.get(place.reading.role, _passed)(fragment, place, names)
        children = place.reading.children
        if len(children) > 1:
            children.sort(key=_start)
        for child in reversed(children):
            if child.children or child.role not in _CALLS:
                stack.append(inside._replace(reading=child))
            else:
                _place_leaf(fragment, inside, child)
    for lane in fragment.lanes.values():
        _merge_instrumentations(lane)


def _passed(fragment: Fragment, place: _Place, names: _Names) -> _Place:
    return place


def _place_agent(fragment: Fragment, place: _Place, names: _Names) -> _Place:
    name = agent_name(place.reading)
    if place.call is not None:
        return place._replace(lane=names.below(name), agent=name, call=None, request=None)
    if not place.agent:
        return place._replace(lane=names.beside(name), agent=name or "", request=None)
    if name is None or name == place.agent:
        return place
    return place._replace(lane=names.below(name), agent=name, request=None)


def _place_request(fragment: Fragment, place: _Place, names: _Names) -> _Place:
    request = Request(place.reading)
    if place.reading.encloses_calls and not _asked_for_all_inside(request):
        # an instrumentation wrote request after request on the agent's span: none of them can be told apart
        place.reading.role, place.reading.mixed = Role.AGENT, True
        return _place_agent(fragment, place, names)
    if place.request is not None:
        place.request.absorb(request)
        return place
    _lane(fragment, place).requests.append(request)
    return place._replace(request=request)


def _asked_for_all_inside(request: Request) -> bool:
    """Whether the calls inside are those that this very request asked for: a stream may run them before it ends."""
    asked = {each.id for each in request.asked or () if each.id is not None}
    inside = request.parts[0].children
    return all(each.role is Role.TOOL and Ran(each).call_id in asked for each in inside)


def _place_leaf(fragment: Fragment, inside: _Place, reading: Reading) -> None:
    # the common case, without a place of its own
    fragment.members.append(reading)
    reading.inside_call = inside.call is not None
    if reading.role is Role.TOOL:
        call = Ran(reading)
        if inside.call is not None and inside.call.is_same(call):
            inside.call.absorb(call)
        else:
            _lane(fragment, inside).calls.append(call)
    elif inside.request is not None:
        inside.request.absorb(Request(reading))
    else:
        _lane(fragment, inside).requests.append(Request(reading))


def _place_call(fragment: Fragment, place: _Place, names: _Names) -> _Place:
    call = Ran(place.reading)
    if place.call is not None and place.call.is_same(call):
        place.call.absorb(call)
        return place
    _lane(fragment, place).calls.append(call)
    return place._replace(call=call, request=None)


def _place_inside(fragment: Fragment, place: _Place, names: _Names) -> _Place:
    if place.call is not None:
        place.call.add_part(place.reading)
    return place


_PLACERS = {
    Role.AGENT: _place_agent,
    Role.MODEL: _place_request,
    Role.TOOL: _place_call,
    Role.INSIDE: _place_inside,
}


def _lane(fragment: Fragment, place: _Place) -> Lane:
    # what a tool does inside was not asked for by the agent that called it
    name = place.lane if place.call is None else place.call.name
    lane = fragment.lanes.get(name)
    if lane is None:
        lane = fragment.lanes[name] = Lane(name)
    return lane


def agent_name(reading: Reading) -> str | None:
    """Return the name of the agent that a span is about; None when it gives none."""
    return bare_name(reading.first(reading.lens.agent))


def _merge_instrumentations(lane: Lane) -> None:
    if len({call.parts[0].span.scope_name for call in lane.calls}) > 1:
        lane.calls = _merged_calls(lane.calls)
    if len({request.parts[0].span.scope_name for request in lane.requests}) > 1:
        lane.requests = _merged_requests(lane.requests)


def _merged_calls(calls: list[Ran]) -> list[Ran]:
    kept: list[Ran] = []
    for call in sorted(calls, key=lambda each: (each.start or 0, -(each.end or 0))):
        twin = next((each for each in reversed(kept[-_NEAR:]) if _twins(each, call)), None)
        if twin is None:
            kept.append(call)
        else:
            twin.absorb(call)
    return kept


def _merged_requests(requests: list[Request]) -> list[Request]:
    kept: list[Request] = []
    for request in sorted(requests, key=lambda each: (each.start, -each.end)):
        twin = next((each for each in reversed(kept[-_NEAR:]) if _twin_requests(each, request)), None)
        if twin is None:
            kept.append(request)
        else:
            twin.absorb(request)
    return kept


_NEAR = 64
"""How many calls back a second instrumentation's span of the same call is looked for."""


def _twins(one: Ran, other: Ran) -> bool:
    scopes = {part.span.scope_name for part in one.parts}
    if other.parts[0].span.scope_name in scopes or not one.is_same(other) or not same_name(one.name, other.name):
        return False
    if one.call_id is not None and one.call_id == other.call_id:
        return True
    return _contains(one.start or 0, one.end or 0, other.start or 0, other.end or 0)


def _twin_requests(one: Request, other: Request) -> bool:
    scopes = {part.span.scope_name for part in one.parts}
    return other.parts[0].span.scope_name not in scopes and _contains(one.start, one.end, other.start, other.end)


def _contains(start: int, end: int, inner_start: int, inner_end: int) -> bool:
    return start <= inner_start and inner_end <= end


def _start(reading: Reading) -> int:
    return reading.span.start_ns or 0
