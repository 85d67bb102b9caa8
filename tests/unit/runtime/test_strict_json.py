"""Strict JSON: one text per value, and a JsonError for everything else."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gcomp.runtime.strict_json import MAX_BYTES, MAX_DEPTH, JsonError, decode, dumps, loads

_texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
_scalars = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | _texts
)
_values = st.recursive(
    _scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_texts, inner, max_size=4), max_leaves=12
)


@settings(deadline=None)
@given(_values)
def test_values_survive_and_have_one_text(value: Any) -> None:
    assert loads(dumps(value)) == value
    assert dumps(loads(dumps(value))) == dumps(value)


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text('[]{}",:\\0e1-nullNaN', max_size=60).map(str.encode))
def test_any_bytes_parse_or_raise_a_json_error(data: bytes) -> None:
    with contextlib.suppress(JsonError):
        loads(data)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (b'{"a":1,"a":1}', "twice"),
        (b'[{"b":{"a":1,"a":2}}]', "twice"),
        (b"NaN", "NaN"),
        (b"-Infinity", "Infinity"),
        (b"1e999", "too large"),
        (b"9223372036854775808", "too large"),
        (b"1" * 10_000, "too large"),
        (b"[" * (MAX_DEPTH + 1) + b"]" * (MAX_DEPTH + 1), "nested"),
        (b"[" * 20_000_000, "nested"),
        (b'{"a":' * 100_000, "nested"),
        (b"\xff", "decode"),
        (b" " * (MAX_BYTES + 1), "bytes"),
        (b"", "Expecting"),
        (b"1 2", "Extra"),
    ],
)
def test_refused_texts(text: bytes, why: str) -> None:
    with pytest.raises(JsonError, match=why):
        loads(text)


def test_brackets_in_strings_are_not_depth() -> None:
    assert loads(b'["' + b"[" * 1000 + b'\\"[\\\\"]') == ["[" * 1000 + '"[\\']
    assert loads(b"[" * MAX_DEPTH + b"]" * MAX_DEPTH)


def test_an_unfinished_string_of_quotes_takes_linear_time() -> None:
    # Quadratic scanning would take hours for this.
    with pytest.raises(JsonError):
        loads(b'"' + b'\\"' * 4_000_000)


@dataclass(frozen=True)
class Inner:
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Outer:
    text: str
    flag: bool
    maybe: int | None
    table: Mapping[str, Inner]
    anything: Any


OUTER = Outer("t", True, None, {"k": Inner((1, 2))}, [1, {"x": None}])


def test_dataclasses_survive() -> None:
    assert decode(Outer, loads(dumps(OUTER)), "it") == OUTER


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("text", 1, "it.text is a int and should be a str"),
        ("flag", 1, "it.flag is a int"),
        ("maybe", True, "it.maybe is a bool"),
        ("maybe", 1.0, "it.maybe is a float"),
        ("table", {"k": {"numbers": ["1"]}}, r"it.table.k.numbers\[0\] is a str"),
        ("table", {"k": {}}, "it.table.k lacks 'numbers'"),
        ("table", {"k": {"numbers": [], "more": 1}}, "it.table.k has unknown 'more'"),
        ("table", [], "it.table is a list"),
        ("more", 1, "it has unknown 'more'"),
    ],
)
def test_schema_errors_say_where(field: str, value: object, why: str) -> None:
    raw = loads(dumps(OUTER))
    raw[field] = value
    with pytest.raises(JsonError, match=why):
        decode(Outer, raw, "it")


@pytest.mark.parametrize("value", [float("nan"), {1, 2}, "\ud800", object()])
def test_what_json_cannot_say_is_refused(value: object) -> None:
    with pytest.raises(JsonError):
        dumps(value)
