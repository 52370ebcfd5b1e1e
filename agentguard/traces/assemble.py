"""Spans of any convention as trajectories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from agentguard import semconv
from agentguard.traces.convention import Role
from agentguard.traces.endings import ending_of
from agentguard.traces.grouping import Fragment, fragments
from agentguard.traces.joining import Entry, Turn, joined
from agentguard.traces.logs import joined_logs
from agentguard.traces.outcomes import outcome_of
from agentguard.traces.records import LOG_TRACE
from agentguard.traces.requests import Request, model_name, summed
from agentguard.traces.shapes import is_object, text, whole
from agentguard.traces.steps import Frame, steps_of
from agentguard.traces.tools import Tools, declared_tools
from agentguard.traces.transcripts import answers_in, from_transcript, left_open
from agentguard.trajectory import MAIN_LANE, UNKNOWN, Ending, RunKey, Step, Trajectory

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from agentguard.call import ToolResult
    from agentguard.traces.convention import Answered
    from agentguard.traces.reading import Reading
    from agentguard.traces.span import LogRecord, Span


@dataclass(frozen=True, kw_only=True)
class Naming:
    """What the user says about runs that their spans do not say, or say under a name of their own."""

    model: str | None = None
    """Filed under this model. None: as the spans say."""
    harness: str | None = None
    """Filed under this harness. None: as the spans say."""
    harness_attribute: str | None = None
    """Span or resource attribute that names the harness."""
    outcome_attribute: str | None = None
    """Span or resource attribute that says whether the final state passed."""
    aliases: Mapping[str, str] = field(default_factory=dict[str, str])
    """Tool names in the trace to the names that references and policies use."""
    why: bool = False
    """Fill `Step.origin`."""
    source: str | None = None
    """Where the spans were read from."""


def group_of(span: Span) -> str:
    """Return the key under which spans must be handed over together: the trace."""
    return span.trace_id


def assemble(
    spans: Iterable[Span], logs: Iterable[LogRecord] = (), *, naming: Naming | None = None, **names: Any
) -> Iterator[Trajectory]:
    """Yield the trajectories of any number of traces. `names` are the fields of `Naming`, if no `naming` is given."""
    assembler = Assembler(naming or Naming(**names))
    traces: dict[str, list[Span]] = {}
    for span in spans:
        traces.setdefault(span.trace_id, []).append(span)
    records: dict[str, list[LogRecord]] = {}
    for record in logs:
        records.setdefault(record.trace_id or "", []).append(record)
    for trace_id, group in traces.items():
        yield from assembler.add(group, records.pop(trace_id, ()))
    for rest in records.values():
        yield from assembler.add((), rest)
    yield from assembler.finish()


def assemble_group(
    spans: Iterable[Span], logs: Iterable[LogRecord] = (), *, naming: Naming | None = None
) -> Iterator[Trajectory]:
    """Yield the trajectories of one complete group (see `group_of`), as if nothing else existed."""
    assembler = Assembler(naming or Naming())
    yield from assembler.add(spans, logs)
    yield from assembler.finish()


class Assembler:
    """Takes complete traces one by one. Holds back only what may belong to a run of several traces."""

    def __init__(self, naming: Naming | None = None) -> None:
        self._naming = naming or Naming()
        self._held: dict[str, list[Fragment]] = {}
        self._told: set[str] = set()
        """Conversations that spans tell of; what was logged of them is the same told twice."""

    @property
    def holds_back(self) -> bool:
        """Whether something waits for `finish`."""
        return bool(self._held)

    def add(self, spans: Iterable[Span], logs: Iterable[LogRecord] = ()) -> Iterator[Trajectory]:
        """Yield the runs that one trace holds whole."""
        for trace_id, group in joined_logs(spans, logs).items():
            found = fragments(group, trace_id)
            for fragment in found:
                key = _held_under(fragment)
                if not fragment.trace_id.startswith(LOG_TRACE):
                    self._told.add(f"{LOG_TRACE}{_conversation(fragment)}")
                if key is None:
                    yield _trajectory([fragment], self._naming, _id_in_trace(fragment, alone=len(found) == 1))
                else:
                    self._held.setdefault(key, []).append(fragment)

    def finish(self) -> Iterator[Trajectory]:
        """Yield the runs that were held back. After an error it goes on behind the run that gave it."""
        while self._held:
            key = next(iter(self._held))
            group = self._held.pop(key)
            if key in self._told:
                continue
            one_trace = len(group) == 1 and not key.startswith(LOG_TRACE)
            run_id = _id_in_trace(group[0], alone=True) if one_trace else key.split(" ", 1)[1]
            yield _trajectory(group, self._naming, run_id)


def _held_under(fragment: Fragment) -> str | None:
    """Return the key of a run that may have calls in other traces; None when this is all of it."""
    if fragment.trace_id.startswith(LOG_TRACE):
        return fragment.trace_id  # what programs log as they go stands in a trace a turn, or in none
    run_id = _first(fragment, semconv.RUN_ID)
    if run_id is not None:
        return None if _is_whole(fragment) else f"run {run_id}"
    asks = any(lane.requests for lane in fragment.lanes.values())
    if fragment.root is not None or (asks and any(lane.calls for lane in fragment.lanes.values())):
        return None
    top = fragment.tops[0]
    conversation = top.first(top.lens.conversation) if asks or top.span.kind != _CLIENT else None
    if conversation is None and asks:
        return None
    if conversation is None:
        # The weakest bonds there are: they hold calls of one file together, never those of two.
        resource, file = top.span.resource, top.span.where.rpartition(":")[0].replace(" ", "_")
        if "service.instance.id" in resource:
            return f"process-in-{file} {resource['service.instance.id']}"
        if top.span.parent_id or "service.name" not in resource:
            return None
        return f"service-in-{file} {resource['service.name']}"
    return f"conversation {conversation}"


_CLIENT = 3


def _is_whole(fragment: Fragment) -> bool:
    if fragment.root is None:
        return False
    counted = whole(fragment.root.span.attributes.get(semconv.RUN_STEPS))
    seen = sum(1 for lane in fragment.lanes.values() for call in lane.calls if call.guard is not None)
    return counted is not None and seen >= counted


def _first(fragment: Fragment, key: str) -> Any:
    for reading in (*fragment.members, *fragment.started):
        value = reading.span.attributes.get(key)
        if value is not None:
            return value
    return None


def _joined_fragments(group: list[Fragment]) -> Fragment:
    if len(group) == 1:
        return group[0]
    roots = [each.root for each in group if each.root is not None]
    whole = Fragment(group[0].trace_id, [top for each in group for top in each.tops], next(iter(roots), None))
    for each in group:
        whole.members += each.members
        whole.started += each.started
        for name, lane in each.lanes.items():
            home = whole.lanes.setdefault(name, lane)
            if home is not lane:
                home.calls += lane.calls
                home.requests += lane.requests
    return whole


def _trajectory(group: list[Fragment], naming: Naming, run_id: str) -> Trajectory:
    fragment = _joined_fragments(group)
    notes: list[str] = []
    if len(group) > 1:
        notes.append(f"{len(group)} traces of one run or process joined: its calls are traces of their own")
    lanes = {name: joined(lane.requests, lane.calls) for name, lane in fragment.lanes.items()}
    told = _from_transcript(fragment)
    _leave_open(fragment, lanes.get(MAIN_LANE))
    if told is not None:
        lanes[MAIN_LANE] = told
        notes.append("turns are read from the conversation in the run's output: no model span carries them")
    declared = _declared(fragment)
    frame = Frame(
        declared=declared,
        any_ran=any(lane.calls for lane in fragment.lanes.values()),
        aliases=naming.aliases,
        why=naming.why,
        history=lambda: _history(fragment),
    )
    steps = _steps(lanes, frame)
    main = lanes.get(MAIN_LANE, [])
    last = next((step for step in reversed(steps) if step.lane == MAIN_LANE and step.result is not None), None)
    evidence = ending_of(fragment, main, last.result.content if last is not None and last.result is not None else None)
    passed = outcome_of(fragment, naming.outcome_attribute)
    notes += [note for note in (evidence.note, passed.note) if note is not None]
    notes += _suspicions(steps)
    key = _key(fragment, naming, notes)
    notes += _name_notes(fragment, naming)
    requests = [request for lane in fragment.lanes.values() for request in lane.requests]
    started, ended = _span_of_time(fragment)
    return Trajectory(
        run_id=text(_first(fragment, semconv.RUN_ID)) or run_id,
        key=key,
        steps=tuple(steps),
        ending=evidence.ending,
        outcome=passed.outcome,
        usage=summed(requests, fragment.root),
        complete=_complete(fragment, steps),
        task=text(_first(fragment, semconv.RUN_TASK)),
        started_at=started,
        ended_at=ended,
        source=naming.source,
        tools={name: schema for name, schema in declared.items() if schema} or None,
        notes=tuple(notes),
        meta=_meta(fragment),
    )


def _from_transcript(fragment: Fragment) -> list[Turn] | None:
    lane = fragment.lanes.get(MAIN_LANE)
    if fragment.root is None or len(fragment.lanes) > 1 or (lane is not None and lane.requests):
        return None
    return from_transcript(fragment.members, lane.calls if lane is not None else [])


def _leave_open(fragment: Fragment, turns: list[Turn] | None) -> None:
    # model spans without content, and an output that still asks for tools
    last = turns[-1] if turns else None
    if (
        last is None
        or last.request is None
        or any(turn.request and turn.request.asked is not None for turn in turns or ())
    ):
        return
    last.entries += [Entry(asked) for asked in left_open(fragment.members, turns or [])]


def _steps(lanes: Mapping[str, list[Turn]], frame: Frame) -> list[Step]:
    turns = [(turn.start, name, turn) for name, lane in lanes.items() for turn in lane if turn.entries]
    turns.sort(key=lambda each: each[0])
    steps: list[Step] = []
    for number, (_, name, turn) in enumerate(turns, 1):
        steps += steps_of(turn, number, name, frame)
    return _in_order_of_arrival(steps)


def _in_order_of_arrival(steps: list[Step]) -> list[Step]:
    numbered = [step for step in steps if step.seq is not None]
    if len(numbered) < 2:
        return steps
    arrived = iter(sorted(numbered, key=lambda step: step.seq or 0))
    return [step if step.seq is None else next(arrived) for step in steps]


def _declared(fragment: Fragment) -> Tools:
    readings = [fragment.root] if fragment.root is not None else []
    for lane in fragment.lanes.values():
        if lane.requests:
            readings += lane.requests[0].parts
    readings += [each for each in fragment.members if each.role is Role.AGENT and each is not fragment.root]
    return declared_tools(readings)


def _history(fragment: Fragment) -> dict[str, Answered]:
    found: dict[str, Answered] = {}
    for lane in fragment.lanes.values():
        if lane.requests:
            found.update(max(lane.requests, key=lambda each: each.start).history())
    return found or answers_in(fragment.members)


def _key(fragment: Fragment, naming: Naming, notes: list[str]) -> RunKey:
    harness = naming.harness or _harness(fragment, naming.harness_attribute)
    if harness is None:
        notes.append(f"no harness is named; the spans are of {_producer(fragment)}")
    return RunKey(
        model=naming.model or _models(fragment) or UNKNOWN,
        harness=harness or UNKNOWN,
        digest=text(_first(fragment, semconv.HARNESS_DIGEST)),
    )


def _harness(fragment: Fragment, attribute: str | None) -> str | None:
    for key in (attribute, semconv.HARNESS_NAME):
        if key is None:
            continue
        value = _first(fragment, key)
        if value is None and fragment.tops:
            value = fragment.tops[0].span.resource.get(key)
        if value is not None:
            return str(value)
    return None


def _producer(fragment: Fragment) -> str:
    spans = [each.span for each in (*fragment.members, *fragment.started)]
    scopes = sorted({f"{each.scope_name} {each.scope_version or ''}".strip() for each in spans if each.scope_name})
    service = next((each.resource.get("service.name") for each in spans), None)
    return ", ".join(scopes) + (f" in service {service}" if service else "")


def _models(fragment: Fragment) -> str | None:
    requests = [request for lane in fragment.lanes.values() for request in lane.requests]
    names = [name for request in requests if (name := _model(request)) is not None]
    if not names and fragment.root is not None:
        agents = [each for each in fragment.members if each.role in (Role.AGENT, Role.WORKFLOW)]
        names = [name for each in agents if (name := model_name(each)) is not None]
    return " + ".join(sorted(set(names))) or None


def _model(request: Request) -> str | None:
    return next((name for part in request.parts if (name := model_name(part)) is not None), None)


def _name_notes(fragment: Fragment, naming: Naming) -> list[str]:
    longer = {
        (call.other_name, call.name) for lane in fragment.lanes.values() for call in lane.calls if call.other_name
    }
    notes = [f"tool {long} is {short}: spans of one call name it both ways" for long, short in sorted(longer)]
    seen = {call.name for lane in fragment.lanes.values() for call in lane.calls}
    return notes + [f"tool {name} is filed as {alias}" for name, alias in naming.aliases.items() if name in seen]


def _suspicions(steps: list[Step]) -> list[str]:
    # words are no evidence: such results stay successes, and a person is told
    suspect = [at for at, step in enumerate(steps, 1) if step.result is not None and _reads_like_an_error(step.result)]
    if not suspect:
        return []
    return [f"results that read like errors and are not marked as such, of steps {', '.join(map(str, suspect))}"]


def _reads_like_an_error(result: ToolResult) -> bool:
    content = result.content
    if result.is_error:
        return False
    if isinstance(content, str):
        return content[:5].lower() == "error" or content.startswith("An error occurred")
    return is_object(content) and content.keys() == {"error"}


def _span_of_time(fragment: Fragment) -> tuple[int | None, int | None]:
    if fragment.root is not None:
        return fragment.root.span.start_ns, fragment.root.span.end_ns
    spans = [each.span for each in (*fragment.members, *fragment.started)]
    starts = [each.start_ns for each in spans if each.start_ns]
    ends = [each.end_ns for each in spans if each.end_ns]
    return min(starts, default=None), max(ends, default=None)


def _conversation(fragment: Fragment) -> Any:
    return next((value for each in fragment.members[:8] if (value := each.first(each.lens.conversation))), None)


def _id_in_trace(fragment: Fragment, *, alone: bool) -> str:
    root = fragment.root or fragment.tops[0]
    return fragment.trace_id if alone else f"{fragment.trace_id}/{root.span.span_id}"


def _complete(fragment: Fragment, steps: list[Step]) -> bool | None:
    seqs = {step.seq for step in steps if step.seq is not None}
    counted = whole(fragment.root.span.attributes.get(semconv.RUN_STEPS)) if fragment.root is not None else None
    if not seqs:
        return None if counted is None else counted == 0
    if max(seqs) + 1 != len(seqs):
        return False
    return None if counted is None else counted == len(seqs)


def _meta(fragment: Fragment) -> Mapping[str, Any]:
    top: Reading | None = next(iter((*fragment.tops, *fragment.started)), None)
    if top is None:
        return {}
    meta: dict[str, Any] = {"trace_id": fragment.trace_id}
    conversation = _conversation(fragment)
    if conversation is not None:
        meta["conversation"] = conversation
    if top.span.resource.get("service.name"):
        meta["service"] = top.span.resource["service.name"]
    return meta


__all__ = ["Assembler", "Ending", "Naming", "assemble", "assemble_group", "group_of"]
