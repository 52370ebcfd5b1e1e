"""What may leave the process, and that nothing makes redaction fail."""

from __future__ import annotations

import collections
import dataclasses
import enum
import time
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import orjson
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentguard import PolicyError
from agentguard.redaction import EMAILS, PATTERNS, Redacted, Redaction

R = "[redacted]"


@pytest.mark.parametrize(
    "key",
    [
        "password", "Password", "PASSWORD", "db_password", "dbPassword", "passwd", "passphrase", "secret", "secrets",
        "client_secret", "clientSecret", "token", "access_token", "accessToken", "x-auth-token", "refreshToken",
        "api_key", "apiKey", "x-api-key", "OPENAI_API_KEY", "private_key", "aws_secret_access_key", "Authorization",
        "auth", "Cookie", "set-cookie", "credentials", "connection_string", "http.request.header.authorization", "otp",
    ],
)  # fmt: skip
def test_a_value_is_a_secret_by_its_key(key: str):
    assert Redaction().value({key: "v"}) == {key: R}


@pytest.mark.parametrize(
    "key",
    [
        "path", "author", "compass", "monkey", "key", "max_tokens", "tokens", "token_count", "passport", "secretary",
        "page_token", "nextPageToken", "next-token", "continuation_token", "gen_ai.usage.input_tokens", "keyboard",
    ],
)  # fmt: skip
def test_a_key_that_only_looks_like_one_is_kept(key: str):
    assert Redaction().value({key: "v"}) == {key: "v"}


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("Authorization: Bearer abcdefgh12", f"Authorization: {R}"),
        ("authorization: Basic YW5uOng=, next", f"authorization: {R}, next"),
        ("it said Bearer abcdefgh12 and went on", f"it said {R} and went on"),
        ("sk-proj-0123456789abcdefghij", R),
        ("ghp_0123456789abcdefghij0123", R),
        ("github_pat_0123456789abcdefghij", R),
        ("glpat-0123456789abcdefghij", R),
        ("xoxb-0123456789-abc", R),
        ("sk_live_0123456789abcdef", R),
        ("id AKIAIOSFODNN7EXAMPLE.", f"id {R}."),
        ("AIza0123456789abcdefghij0123456789-_x", R),
        ("eyJhbGciOiJI.eyJzdWIiOiIx.SflKxwRJSMeK", R),
        ("postgres://ann:hunter2@db/x", f"postgres://{R}@db/x"),
        ("-----BEGIN RSA PRIVATE KEY-----\nabc\n-----END RSA PRIVATE KEY----- after", f"{R} after"),
        ("-----BEGIN PRIVATE KEY-----\nabc that never ends", R),
    ],
)
def test_a_secret_is_known_by_its_shape(text: str, left: str):
    assert Redaction().text(text) == left


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("API_KEY=abc123 next", f"API_KEY={R} next"),
        ("https://h/x?token=abc&b=1", f"https://h/x?token={R}&b=1"),
        ('{"password": "hunter2", "a": 1}', f'{{"password": "{R}", "a": 1}}'),
        ('{"password":"hun\\"ter2","a":1}', f'{{"password":"{R}","a":1}}'),
        ('{"password": "never ends', f'{{"password": "{R}'),
        ("{'dbPassword': 'x y'}", f"{{'dbPassword': '{R}'}}"),
        (r'{"x": "{\"token\": \"abc\", \"a\": 1}"}', rf'{{"x": "{{\"token\": \"{R}\", \"a\": 1}}"}}'),
        ("secret:\n  after", f"secret:\n  {R}"),
        ("password: ", "password: "),
        ("headers: 'Authorization: Basic abc' end", f"headers: 'Authorization: {R}' end"),
        ("max_tokens: 5, path=a.py", "max_tokens: 5, path=a.py"),
    ],
)
def test_a_secret_is_known_by_its_key_inside_a_text(text: str, left: str):
    assert Redaction().text(text) == left


def test_ordinary_texts_are_kept():
    text = "task-0123456789abcdef0123: open https://example.org/a:b at 10:30, mail ann@example.org; the key is 5"
    assert Redaction().text(text) == text


def test_addresses_of_mail_are_taken_out_when_asked():
    assert Redaction(patterns=(*PATTERNS, EMAILS)).text("to ann@example.org now") == f"to {R} now"


def test_own_keys_and_patterns_replace_the_defaults():
    own = Redaction(keys=("card",), patterns=(r"\d{4}",))
    assert own.value({"card": "x", "password": "hunter2", "n": "a 4111 b"}) == {
        "card": R, "password": "hunter2", "n": f"a {R} b",
    }  # fmt: skip


def test_no_keys_and_no_patterns_take_out_nothing():
    own = Redaction(keys=(), patterns=())
    assert own.value({"password": "token=1"}) == {"password": "token=1"}


@pytest.mark.parametrize("where", ["keys", "patterns"])
def test_a_pattern_that_does_not_compile_is_refused(where: str):
    with pytest.raises(PolicyError) as told:
        Redaction(**{where: ("a(",)})
    assert told.value.key == f"redaction.{where}"
    assert "'a(' is no regular expression" in str(told.value)


def test_it_says_what_was_done():
    assert Redaction().apply({"a": 1}) == Redacted({"a": 1}, secrets=False, cut=False)
    assert Redaction().apply({"token": 1}) == Redacted({"token": R}, secrets=True, cut=False)
    assert Redaction(max_chars=3).apply("abcdef") == Redacted("abc[... 3 characters more]", secrets=False, cut=True)


# ---------------------------------------------------------------- kinds of values


@dataclasses.dataclass
class Login:
    user: str
    password: str


class Struct(msgspec.Struct):
    user: str
    password: str


class Model(pydantic.BaseModel):
    user: str
    password: str


Pair = collections.namedtuple("Pair", "user password")


@pytest.mark.parametrize("kind", [Login, Struct, Model])
def test_secrets_inside_objects_are_found_by_their_fields(kind: Any):
    assert Redaction().value([kind(user="ann", password="hunter2")]) == [{"user": "ann", "password": R}]


def test_a_named_tuple_stays_a_list():
    assert Redaction().value(Pair("ann", "hunter2")) == ["ann", R]


class Colour(enum.Enum):
    RED = "red"


class Text(str):
    __slots__ = ()


@pytest.mark.parametrize(
    ("value", "left"),
    [
        (None, None), (True, True), (1.5, 1.5), (2**70, 2**70), (float("nan"), None), (float("inf"), None),
        (Colour.RED, "red"), (Text("x"), "x"), (Decimal("1.50"), "1.50"), (date(2026, 12, 1), "2026-12-01"),
        (UUID(int=1), "00000000-0000-0000-0000-000000000001"), (Path("a/b"), "a/b"), (("a", 1), ["a", 1]),
        ({"a"}, ["a"]),
        (b"abc", "[3 bytes]"), (10**100, "[integer of 333 bits]"), (object(), "[builtins.object]"),
        ({1: {"token": 2}}, {"1": {"token": R}}), ("\ud800", "?"),
    ],
)  # fmt: skip
def test_every_value_has_a_form(value: Any, left: Any):
    assert Redaction().value(value) == left


def test_what_it_gives_is_json():
    applied = Redaction().apply({"b": 2**70, "a": [float("nan"), "\ud800", b"x"]})
    assert applied.json == '{"a":[null,"?","[1 bytes]"],"b":1180591620717411303424}'


class Hostile:
    """Whatever is asked of it fails."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


class HostileMapping(dict[Any, Any]):
    def items(self) -> Any:
        raise RuntimeError("no")


class HostileKey:
    def __str__(self) -> str:
        raise RuntimeError("no")


def test_a_value_that_misbehaves_is_left_out():
    value = [1, {"a": HostileMapping(), HostileKey(): 1}, {"b": HostileMapping()}, Hostile()]
    assert Redaction().value(value) == [1, "[unreadable]", {"b": "[unreadable]"}, "[unreadable]"]


def test_a_cycle_ends():
    twice: list[Any] = []
    twice += [twice, twice]
    began = time.thread_time()
    assert Redaction().apply(twice).cut
    assert time.thread_time() - began < 5


def test_depth_ends():
    deep: Any = "x"
    for _ in range(10_000):
        deep = {"a": deep}
    assert "[more]" in Redaction().apply(deep).json


# ---------------------------------------------------------------- sizes


def test_what_is_cut_is_still_json():
    applied = Redaction(max_chars=10).apply({"text": "x" * 50, "n": 1})
    assert orjson.loads(applied.json) == {"text": "xxxxxxxxxx[... 40 characters more]", "n": 1}


def test_all_texts_of_a_value_together_are_bounded():
    applied = Redaction().apply({str(i): "x" * 4_000 for i in range(900)})
    assert applied.cut
    assert len(applied.json) < 75_000


def test_many_items_are_cut_and_counted():
    assert Redaction().value(list(range(1_005)))[-1] == "[5 more]"
    assert Redaction().value({str(i): None for i in range(1_005)})["..."] == "[more]"


@pytest.mark.parametrize("at", range(60, 120))
def test_a_cut_never_leaves_half_a_secret(at: int):
    secret = "sk-" + "s3cr3t" * 10
    text = "." * (100 - 20) + " " + secret + " " + "." * 30_000
    assert "s3cr3t" not in Redaction(max_chars=at).text(text)


def test_a_megabyte_costs_no_more_than_what_is_kept_of_it():
    began = time.thread_time()
    Redaction().text("password: x " * 100_000)
    assert time.thread_time() - began < 1


HARD = [
    "password" * 20_000, '"' * 100_000, "token:" * 20_000, 'password: "' + "\\" * 100_001, 'password: "' * 20_000,
    "eyJ" + "a" * 200_000, "x@" * 100_000, "://" + "a:" * 100_000, "api_" * 50_000, "pass " * 40_000,
    "eyJaaaaaaaaa." * 20_000, "a.b-" * 50_000,
]  # fmt: skip


@pytest.mark.parametrize("text", HARD, ids=[text[:8] for text in HARD])
def test_no_text_is_hard_to_read(text: str):
    whole = Redaction(max_chars=10**9, max_total_chars=10**9, patterns=(*PATTERNS, EMAILS))
    began = time.thread_time()
    whole.text(text)
    assert time.thread_time() - began < 5


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@given(json_values)
def test_any_data_comes_out_as_json(value: Any):
    orjson.loads(Redaction().apply(value).json)


@given(st.text(), st.text(), st.sampled_from(["password", "api_key", "authToken"]))
def test_no_secret_under_its_key_comes_out(before: str, after: str, key: str):
    canary = "c4n4ry"
    data = {"a": [{key: canary}], "b": orjson.dumps({key: canary}).decode(), "c": before.replace('"', ""), "d": after}
    assert canary not in Redaction().apply(data).json
