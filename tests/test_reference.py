"""References: their files, what they ask for beyond a mode, and how a run is held against them."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from agentguard.call import ToolCall, ToolResult
from agentguard.errors import IntegrationMissing, ReferencesError
from agentguard.matching import (
    ANYTHING,
    OPTIONAL,
    Arguments,
    Attempts,
    Call,
    Contains,
    Custom,
    Folded,
    Ignored,
    Match,
    OneOf,
    Regex,
    Rules,
    Status,
    Tolerance,
    diff,
)
from agentguard.reference import (
    Format,
    Judgement,
    Reference,
    References,
    calls_of,
    from_steps,
    judge,
    load_references,
    parse_references,
    to_lines,
)
from agentguard.trajectory import Step

A, B, C = Call("a", {}), Call("b", {}), Call("c", {})


def toml(text: str) -> Reference:
    return parse_references(f"[tasks.t]\n{text}", form=Format.TOML).tasks["t"]


def held(reference: Reference, *calls: Call) -> Judgement:
    return judge(reference, calls)


EXACT = '[tasks.t]\nmatch = "exact"\n'
CALLED = "tasks: {{t: {{match: exact, calls: [{{tool: f, arguments: {}}}]}}}}"


# ---------------------------------------------------------------- files

FULL = """
[defaults]
match = "superset"

[tasks.book]
step_budget = 6
forbidden = ["cancel"]
failed_calls = "skip"
refused_calls = "skip"
order = [["find", "first hold"], ["find", "hold", "pay"]]
calls = [
  "find",
  {tool = "hold", arguments = {train = "R61"}, id = "first hold", turn = 1},
  {tool = "hold", arguments = {train = "R62"}, compare = "ignore"},
  {tool = "pay", compare = {at = {amount = {tolerance = 0.5}}, allow_extra = true}},
]
arguments = {values = "folded", ignore = ["request_id"]}

[tasks.book.tools]
hold = {only = ["train"], allow_missing = true}

[[tasks.book.alternatives]]
calls = ["rebook"]
match = "exact"

[runs.r1]
calls = []
match = "exact"
"""


def test_a_file_says_everything_that_a_reference_holds():
    rules = Rules(
        default=Arguments(values=Folded(), ignore=("request_id",)),
        tools={"hold": Arguments(only=("train",), allow_missing=True)},
    )
    pay = Arguments(at={"amount": Tolerance(absolute=0.5)}, allow_extra=True)
    shared = {
        "rules": rules,
        "step_budget": 6,
        "forbidden": ("cancel",),
        "failed_calls": Attempts.SKIP,
        "refused_calls": Attempts.SKIP,
    }
    book = Reference(
        calls=(
            Call("find", rule=ANYTHING),
            Call("hold", {"train": "R61"}, 1, id="first hold"),
            Call("hold", {"train": "R62"}, rule=ANYTHING),
            Call("pay", {}, rule=pay),
        ),
        match=Match.SUPERSET,
        order=(("find", "first hold"), ("find", "hold"), ("hold", "pay")),
        alternatives=(Reference(calls=(Call("rebook", rule=ANYTHING),), match=Match.EXACT, **shared),),
        **shared,
    )
    none = Reference(calls=(), match=Match.EXACT)
    assert parse_references(FULL, form=Format.TOML) == References(tasks={"book": book}, runs={"r1": none})


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("r.toml", EXACT + 'calls = [{tool = "f", arguments = {n = 1}}]\n'),
        ("r.json", '{"tasks": {"t": {"match": "exact", "calls": [{"tool": "f", "arguments": {"n": 1}}]}}}'),
        ("r.jsonl", '\n{"task": "t", "match": "exact", "calls": [{"tool": "f", "arguments": {"n": 1}}]}\n'),
    ],
)
def test_every_format_says_the_same(tmp_path: Path, name: str, text: str):
    (tmp_path / name).write_text(text)
    one = Reference(calls=(Call("f", {"n": 1}),), match=Match.EXACT)
    assert load_references(tmp_path / name) == References(tasks={"t": one})


@pytest.mark.parametrize("name", ["r.yaml", "r.YML"])
def test_yaml_says_the_same(tmp_path: Path, name: str):
    pytest.importorskip("yaml")
    (tmp_path / name).write_text("tasks:\n  t:\n    match: exact\n    calls:\n      - {tool: f, arguments: {n: 1}}\n")
    one = Reference(calls=(Call("f", {"n": 1}),), match=Match.EXACT)
    assert load_references(tmp_path / name) == References(tasks={"t": one})


def test_yaml_without_its_package_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(IntegrationMissing, match="pyyaml is not installed"):
        parse_references("a: 1", form=Format.YAML)


def test_a_reference_of_a_run_goes_before_that_of_its_task():
    task, run = Reference(calls=(), match=Match.EXACT), Reference(calls=(), match=Match.SUBSET)
    references = References(tasks={"t": task}, runs={"r": run})
    assert references.find(run="r", task="t") is run
    assert references.find(run="other", task="t") is task
    assert references.find(run="other", task=None) is None
    assert References(tasks={"": task}).find(run="r", task=None) is None


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ('"regex"', Regex()),
        ('{regex = "a+"}', Regex("a+")),
        ('{one_of = [1, "$optional"]}', OneOf((1, OPTIONAL))),
        ("{equal = 3}", OneOf((3,))),
        ('{contains = "x"}', Contains("x")),
        ("{tolerance = {relative = 0.1}}", Tolerance(absolute=0, relative=0.1)),
    ],
)
def test_rules_for_values(value: str, rule: object):
    reference = toml(f'match = "exact"\ncalls = []\narguments = {{at = {{q = {value}}}}}')
    assert reference.rules.default == Arguments(at={"q": rule})


def test_a_schema_is_a_rule_for_a_value():
    reference = toml(
        'match = "exact"\ncalls = [{tool = "f", compare = {at = {n = {schema = {type = "integer", minimum = 3}}}}}]'
    )
    assert held(reference, Call("f", {"n": 3})).passes is True
    assert held(reference, Call("f", {"n": 2})).passes is False


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "[tasks.t]\ncals = []",
            "tasks.t.cals: unknown setting; did you mean calls? known: alternatives, arg",
        ),
        ("[task.t]\n", "task: unknown setting; did you mean tasks? known: defaults, runs, tasks"),
        ("tasks = 1", "tasks: expected a table, got int"),
        ("[tasks.t]\n", "tasks.t: calls is missing; calls = [] expects that nothing is called"),
        ("[tasks.t]\ncalls = []", "tasks.t: match is missing; one of: exact, exact_turns, in_order, any_order, supers"),
        (
            '[tasks.t]\nmatch = "superst"\ncalls = []',
            "tasks.t.match: unknown value 'superst'; did you mean superset?",
        ),
        (EXACT + "calls = 1", "tasks.t.calls: expected a list, got int"),
        (EXACT + "calls = [1]", "tasks.t.calls.0: expected a table, got int"),
        (EXACT + "calls = [{}]", "tasks.t.calls.0: tool is missing"),
        (EXACT + "calls = [{tool = 1}]", "tasks.t.calls.0.tool: expected text, got int"),
        (EXACT + 'calls = [{tool = "f", args = {}}]', "tasks.t.calls.0.args: unknown setting; did"),
        (
            EXACT + 'calls = [{tool = "f", arguments = {x = [{d = 2026-12-01}]}}]',
            "tasks.t.calls.0.arguments.x.0.d: a date or time equals no JSON value; write it in quotes: '2026-12-01'",
        ),
        (EXACT + 'calls = ["f"]\norder = [["f"]]', "tasks.t.order.0: expected a list of two or mo"),
        (
            EXACT + 'calls = ["pay"]\norder = [["pay", "pat"]]',
            "'pat'; did you mean pay? known: pay",
        ),
        (
            EXACT + "calls = []\nstep_budget = -1",
            "step_budget: expected a whole number of 0 or mor",
        ),
        (
            EXACT + "calls = []\nstep_budget = true",
            "expected a whole number of 0 or more, got True",
        ),
        (EXACT + 'calls = []\narguments = "ignor"', "unknown value 'ignor'; did you mean ignore?"),
        (
            EXACT + "calls = []\narguments = {allow_extra = 1}",
            "allow_extra: expected true or false",
        ),
        (
            EXACT + 'calls = []\narguments = {values = "fold"}',
            "unknown value 'fold'; did you mean f",
        ),
        (
            EXACT + "calls = []\narguments = {values = {}}",
            "values: expected one of: contains, equal",
        ),
        (
            EXACT + 'calls = []\narguments = {values = {regex = "("}}',
            "regex: not a regular express",
        ),
        (
            EXACT + 'calls = []\narguments = {values = {tolerance = "x"}}',
            "expected a number of 0 or",
        ),
        (
            EXACT + "calls = []\narguments = {values = {tolerance = nan}}",
            "expected a number of 0 or",
        ),
        (EXACT + "calls = []\narguments = {values = {schema = {type = 1}}}", "not a JSON Schema: "),
        ("tasks = [", "references: cannot be read: "),
    ],
)
def test_what_is_not_understood_is_named_with_its_place(text: str, message: str):
    with pytest.raises(ReferencesError) as error:
        parse_references(text, form=Format.TOML)
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("tasks: {7: {match: exact, calls: []}}", "tasks: expected text as a name, got 7; write it in quotes"),
        (CALLED.format("{on: 1}"), "tasks.t.calls.0.arguments: expected text as a name, got True; write it in quotes"),
        (CALLED.format("{x: [{1: 2}]}"), "tasks.t.calls.0.arguments.x.0: expected text as a name, got 1; write it in"),
        (CALLED.format("{x: !!binary aGk=}"), "tasks.t.calls.0.arguments.x: bytes equal no JSON value; write text or"),
    ],
)
def test_what_yaml_makes_of_unquoted_text_is_refused(text: str, message: str):
    pytest.importorskip("yaml")
    with pytest.raises(ReferencesError) as error:
        parse_references(text, form=Format.YAML)
    assert str(error.value).startswith(f"references: {message}")


@pytest.mark.parametrize("form", [Format.JSON, Format.JSONL, Format.TOML])
def test_what_is_nested_too_deep_cannot_be_read(form: Format):
    with pytest.raises(ReferencesError, match="cannot be read"):
        parse_references("[" * 100_000, form=form)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"match": "exact", "calls": []}', "r.jsonl:2: expected either task or run, to say what the reference is for"),
        ('{"task": "t", "run": "r"}', "r.jsonl:2: expected either task or run, to say what the reference is for"),
        ('{"task": "t", "match": "exact", "calls": []}', "r.jsonl:2: task: 't' has a reference already; write one and"),
        ('{"run": "r", "calls": [], "match": "x"}', "r.jsonl:2: match: unknown value 'x'; known: exact"),
        ('{"run": ', "r.jsonl:2: cannot be read: "),
    ],
)
def test_a_bad_line_is_named_with_its_number(line: str, message: str):
    text = '{"task": "t", "match": "exact", "calls": []}\n' + line
    with pytest.raises(ReferencesError) as error:
        parse_references(text, form=Format.JSONL, place="r.jsonl")
    assert str(error.value).startswith(message)


def test_an_unknown_ending_is_refused(tmp_path: Path):
    with pytest.raises(ReferencesError, match=r"refs.txt: unknown ending '.txt'; known: toml, yaml, json, jsonl"):
        load_references(tmp_path / "refs.txt")


def test_lines_of_runs_and_tasks_stand_beside_one_another():
    text = '{"task": "x", "match": "exact", "calls": []}\n{"run": "x", "match": "subset", "calls": ["a"]}'
    references = parse_references(text, form=Format.JSONL)
    assert (references.tasks["x"].match, references.runs["x"].match) == (Match.EXACT, Match.SUBSET)


# ---------------------------------------------------------------- judging


def test_the_run_that_does_what_is_necessary_passes():
    judged = held(Reference(calls=(A, B), match=Match.SUPERSET), B, C, A)
    assert (judged.passes, judged.faults, judged.unscored) == (True, (), ())


def test_an_alternative_that_passes_is_taken():
    reference = Reference(calls=(A,), match=Match.EXACT, alternatives=(Reference(calls=(B,), match=Match.EXACT),))
    assert held(reference, B).passes is True
    assert held(reference, B).reference.calls == (B,)


def test_without_one_that_passes_the_nearest_is_told():
    other = Reference(calls=(A, B), match=Match.ANY_ORDER)
    judged = held(Reference(calls=(C, C, C), match=Match.EXACT, alternatives=(other,)), A, C)
    assert judged.passes is False
    assert judged.reference == other
    assert [fault.text for fault in judged.faults] == ["expected b, not called", "c: not expected"]


def test_an_alternative_that_cannot_be_scored_leaves_the_verdict_open():
    reference = Reference(
        calls=(A,), match=Match.EXACT, alternatives=(Reference(calls=(Call("f", {"n": 1}),), match=Match.EXACT),)
    )
    judged = held(reference, Call("f"))
    assert (judged.passes, judged.unscored) == (None, ("arguments not recorded (call 1)",))


def test_a_forbidden_tool_fails_the_run_whatever_else_it_did():
    judged = held(Reference(calls=(A,), match=Match.SUPERSET, forbidden=("c",)), A, C)
    assert judged.passes is False
    assert [(fault.code, fault.text, fault.actual) for fault in judged.faults] == [
        ("match.forbidden", "c: must not be called", 1)
    ]


def test_faults_count_calls_as_they_were_handed_in():
    reference = Reference(calls=(A,), match=Match.EXACT, refused_calls=Attempts.SKIP)
    judged = held(reference, Call("x", {}, status=Status.REFUSED), A, C)
    assert [(fault.code, fault.actual) for fault in judged.faults] == [("match.extra", 2)]
    assert judged.positions == (1, 2)


def test_doubts_count_calls_as_they_were_handed_in():
    reference = Reference(calls=(Call("f", {"n": 1}),), match=Match.EXACT, failed_calls=Attempts.SKIP)
    judged = held(reference, Call("f", {"n": 1}, status=Status.ERROR), Call("f"))
    assert judged.unscored == ("arguments not recorded (call 2)",)


ORDERED = Reference(calls=(A, B, C), match=Match.SUPERSET, order=(("a", "b"),))


@pytest.mark.parametrize("calls", [(A, B, C), (C, A, B), (A, C, B), (A, B, A, C)])
def test_only_the_order_that_was_asked_for_matters(calls: tuple[Call, ...]):
    assert held(ORDERED, *calls).passes is True


def test_what_came_too_early_fails():
    judged = held(ORDERED, B, A, C)
    assert [(fault.code, fault.text) for fault in judged.faults] == [("match.order", "a must come before b")]


def test_calls_of_one_parallel_turn_do_not_wait_for_one_another():
    assert held(ORDERED, Call("a", {}, 0), Call("b", {}, 0), C).passes is False
    assert held(ORDERED, Call("a", {}, 0), Call("b", {}, 1), C).passes is True


def test_an_order_is_between_the_calls_that_are_meant():
    first, second = Call("f", {"n": 1}, id="one"), Call("f", {"n": 2}, id="two")
    reference = Reference(calls=(second, first), match=Match.ANY_ORDER, order=(("one", "two"),))
    assert held(reference, first, second).passes is True
    assert held(reference, second, first).passes is False


def test_an_order_that_lost_arguments_could_break_is_open():
    first, second = Call("f", {"n": 1}, id="one"), Call("g", {})
    reference = Reference(calls=(first, second), match=Match.SUPERSET, order=(("one", "g"),))
    assert held(reference, Call("f"), second, first).passes is None
    assert held(reference, first, second, Call("f")).passes is True


def test_an_order_of_unknown_calls_is_refused():
    with pytest.raises(ReferencesError, match="order: no call has the id or tool 'x'"):
        Reference(calls=(A,), match=Match.EXACT, order=(("a", "x"),))


def test_the_worked_example_makes_the_necessary_calls():
    reference = toml('match = "superset"\ncalls = ["list_dir", "edit_file"]\nstep_budget = 5')
    calls = [
        Call("search_docs", {"q": "failing test"}),
        Call("search_docs", {"q": "failing test"}),
        Call("read_file", {"path": "src/mian.py"}),
        Call("read_file", {"path": "src/mian.py"}),
        Call("run_tests", {}),
        Call("list_dir", {"path": "src"}),
        Call("edit_file", {"path": "src/main.py"}),
        Call("run_tests", {}),
    ]
    assert judge(reference, calls).passes is True
    assert [fault.text for fault in judge(reference, calls[:6]).faults] == ["expected edit_file, not called"]
    assert diff(judge(reference, calls[4:6]).comparison).splitlines() == [
        "+ run_tests {}",
        '= list_dir {"path":"src"}',
        "- edit_file ...",
    ]


# ---------------------------------------------------------------- from runs


STEPS = (
    Step(call=ToolCall("f", {"n": 1}), turn=0, result=ToolResult("no such row", is_error=True)),
    Step(call=ToolCall("f", {"n": 2}), turn=1, result=ToolResult("ok")),
    Step(call=ToolCall("g", None, None, '{"n": '), turn=1),
    Step(call=ToolCall("h"), executed=False),
)


def test_steps_become_calls_with_what_became_of_them():
    assert calls_of(STEPS) == [
        Call("f", {"n": 1}, 0, Status.ERROR),
        Call("f", {"n": 2}, 1),
        Call("g", None, 1, absence="arguments are no JSON object"),
        Call("h", None, None, Status.REFUSED),
    ]


def test_keys_that_loops_were_found_by_serve_matching():
    calls = calls_of(STEPS, keys=[step.call.fingerprint for step in STEPS])
    assert [call.key for call in calls] == [step.call.fingerprint for step in STEPS]
    reference = Reference(calls=(Call("f", {"n": 2}), Call("g", {})), match=Match.SUPERSET)
    assert judge(reference, calls).passes is None
    assert judge(reference, calls).comparison.relation.sure == [0b10, 0]


def test_a_good_run_sets_a_reference():
    reference = from_steps(STEPS, match=Match.EXACT_TURNS, step_budget=4)
    assert [call.tool for call in reference.calls] == ["f", "g"]
    assert (reference.match, reference.step_budget) == (Match.EXACT_TURNS, 4)
    assert len(from_steps(STEPS, match=Match.EXACT, failed=Attempts.COUNT, refused=Attempts.COUNT).calls) == 4


def test_references_are_read_back_as_they_were_written():
    written = parse_references(FULL, form=Format.TOML)
    assert parse_references(to_lines(written), form=Format.JSONL) == written


def test_every_rule_that_a_file_can_hold_is_read_back():
    rules = [
        Folded(),
        Ignored(),
        Contains(),
        Contains(None),
        OneOf(),
        OneOf((1, 2**70)),
        Regex(),
        Regex("a"),
        Tolerance(),
    ]
    at = {str(number): rule for number, rule in enumerate(rules)}
    reference = Reference(
        calls=(Call("f", {"n": 2**70}, 3, rule=Arguments(only=("n", "m"), at=at, allow_missing=True)),),
        match=Match.EXACT_TURNS,
        rules=Rules(default=ANYTHING, tools={"f": Arguments(values=Folded(), ignore=("x",), allow_extra=True)}),
        step_budget=3,
        alternatives=(Reference(calls=(), match=Match.SUBSET),),
    )
    references = References(runs={"r": reference})
    assert parse_references(to_lines(references), form=Format.JSONL) == references


def test_a_short_reference_is_a_short_line():
    assert to_lines(References(tasks={"t": Reference(calls=(Call("a", {}),), match=Match.EXACT)})) == (
        '{"task": "t", "match": "exact", "calls": [{"tool": "a", "arguments": {}}]}\n'
    )
    assert to_lines(References(tasks={"t": Reference(calls=(), match=Match.EXACT)})) == (
        '{"task": "t", "match": "exact", "calls": []}\n'
    )


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (Call("f"), "t: call 1: arguments not recorded; give f arguments, or a rule that ignores them"),
        (Call("f", {"x": b"y"}), "t: an argument is no JSON: "),
        (Call("f", {"x": float("nan")}), "t: an argument is no JSON: "),
        (Call("f", {}, rule=Arguments(values=Custom(max))), "t: call 1: Custom is a function, which no file can hold"),
    ],
)
def test_what_no_file_can_hold_is_refused(call: Call, message: str):
    with pytest.raises(ReferencesError) as error:
        to_lines(References(tasks={"t": Reference(calls=(call,), match=Match.EXACT)}))
    assert str(error.value).startswith(message)
