"""Argument and result encodings, undone without guessing."""

from __future__ import annotations

import pytest

from agentguard.traces.arguments import Arguments, decode, literals_in, looks_like_schema
from agentguard.traces.results import Outcome, decode_result

CITY = {"properties": {"city": {"type": "string"}}, "type": "object"}


@pytest.mark.parametrize(
    "recorded",
    [
        {"city": "Zürich"},
        '{"city": "Zürich"}',
        '{"city": "Z\\u00fcrich"}',
        '"{\\"city\\": \\"Zürich\\"}"',
        "{'city': 'Zürich'}",
        '{"kwargs": {"city": "Zürich"}}',
        '{"args": [], "sanitize_inputs_outputs": true, "kwargs": {"city": "Zürich"}}',
        '{"input_str": "{\'city\': \'Zürich\'}", "tags": [], "metadata": {}}',
        '{"input_str": "{}", "tags": [], "inputs": {"city": "Zürich"}}',
    ],
)
def test_every_encoding_of_the_same_arguments_is_undone(recorded):
    assert decode(recorded).named == {"city": "Zürich"}


@pytest.mark.parametrize("recorded", ["Zürich", "7", "[1, 2]", '"Zürich"', "", "{'a': f()}", "{" * 300, '{"a": '])
def test_what_is_no_object_stays_raw(recorded):
    found = decode(recorded)
    assert (found.named, found.raw) == (None, recorded)


def test_nothing_recorded_is_not_an_empty_object():
    assert decode(None) == Arguments()
    assert decode("{}").named == {}


def test_a_bare_value_is_named_by_a_tool_with_one_argument():
    assert decode("Zürich", CITY).named == {"city": "Zürich"}
    assert decode("7", {"properties": {"a": {}, "b": {}}}) == Arguments(raw="7", bare=7)


def test_nothing_sent_to_a_tool_without_arguments_is_an_empty_object():
    assert decode("", {"type": "object"}).named == {}


def test_an_argument_really_named_kwargs_is_kept():
    schema = {"type": "object", "properties": {"kwargs": {"type": "object"}}}
    assert decode('{"kwargs": {"a": 1}}', schema).named == {"kwargs": {"a": 1}}
    assert decode('{"kwargs": {"a": 1}, "other": 2}').named == {"kwargs": {"a": 1}, "other": 2}
    assert decode('{"kwargs": 1}').named == {"kwargs": 1}


def test_an_argument_really_named_input_str_is_kept():
    schema = {"type": "object", "properties": {"input_str": {"type": "string"}}}
    assert decode('{"input_str": "{}", "tags": []}', schema).named == {"input_str": "{}", "tags": []}
    assert decode('{"input_str": "{}"}').named == {"input_str": "{}"}
    assert decode('{"input_str": 1, "tags": []}').named == {"input_str": 1, "tags": []}


def test_positional_values_stay_raw():
    found = decode('{"args": [1], "kwargs": {}}')
    assert (found.named, found.raw) == (None, '{"args":[1],"kwargs":{}}')


def test_a_long_repr_is_not_evaluated():
    assert decode("{'a': '" + "x" * 300_000 + "'}").named is None


def test_values_json_cannot_write_are_kept_as_their_repr():
    assert decode([2**80]).raw == "[1208925819614629174706176]"
    assert decode(["\ud800"]).raw == "['\\ud800']"


def test_literals_are_taken_out_of_a_repr():
    text = """A(messages=[{'a': ')\\'"'}], b=1), A(messages=[1], messages=x, messages=(2,))"""
    assert list(literals_in(text, "messages=")) == [[{"a": ")'\""}], [1], (2,)]
    assert list(literals_in("messages=[1", "messages=")) == []


def test_schemas_are_told_from_arguments():
    assert looks_like_schema(CITY)
    assert looks_like_schema({"city": {"type": "string"}})
    assert not looks_like_schema({"city": "Zürich"})
    assert not looks_like_schema({})
    assert not looks_like_schema("x")


@pytest.mark.parametrize(
    ("recorded", "outcome"),
    [
        ('{"a": 1}', Outcome({"a": 1})),
        ("{'a': True}", Outcome({"a": True})),
        ("plain text", Outcome("plain text")),
        ('[{"text": "{\\"a\\": 1}"}]', Outcome({"a": 1})),
        ('[{"json": {"a": 1}}]', Outcome({"a": 1})),
        ('[{"text": "a"}, {"text": "b"}]', Outcome([{"text": "a"}, {"text": "b"}])),
        ("[1]", Outcome([1])),
        ('[{"image": 1}]', Outcome([{"image": 1}])),
        ('[{"toolResult": {"status": "error", "content": [{"text": "boom"}]}}]', Outcome("boom", True)),
        ('{"content": [{"type": "text", "text": "boom"}], "isError": true}', Outcome("boom", True)),
        ('{"content": [], "structuredContent": {"a": 1}}', Outcome({"a": 1})),
        ('{"type": "tool", "data": {"content": "7", "tool_call_id": "c"}}', Outcome(7, call_id="c")),
        ('{"kwargs": {"content": "no", "tool_call_id": "c", "status": "error"}}', Outcome("no", True, call_id="c")),
        ('{"output": {"content": "7", "tool_call_id": "c"}}', Outcome(7, call_id="c")),
        ('{"id": "c", "name": "page", "response": {"a": 1}}', Outcome({"a": 1}, call_id="c")),
        ('{"raw_output": {"a": 1}, "is_error": false}', Outcome({"a": 1})),
        (
            '{"tool_id": "c", "tool_output": {"raw_output": null, "is_error": true,'
            ' "blocks": [{"block_type": "text", "text": "boom"}]}}',
            Outcome("boom", True, call_id="c"),
        ),
    ],
)
def test_results_are_taken_out_of_what_wraps_them(recorded, outcome):
    assert decode_result(recorded) == outcome
