"""MiniMalloc's CSV: what is written reads the same, and what is wrong is refused with its line."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.minimalloc_csv import parse, read, write
from gcomp.errors import GcompError, InvalidModelError, UsageError
from gcomp.memory.problem import Buffer, Problem


@st.composite
def buffers(draw: st.DrawFn) -> list[Buffer]:
    names = draw(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\0")), unique=True, max_size=5))
    found: list[Buffer] = []
    for name in names:
        lower, alignment = draw(st.integers(0, 99)), draw(st.integers(1, 8))
        offset = draw(st.none() | st.integers(0, 9).map(lambda n, a=alignment: n * a))
        found.append(Buffer(name, lower, lower + draw(st.integers(1, 9)), draw(st.integers(0, 99)), alignment, offset))
    return found


@given(buffers(), st.none() | st.integers(0, 99))
def test_what_is_written_reads_the_same(buffers: list[Buffer], capacity: int | None) -> None:
    problem = Problem(buffers, capacity)
    assert parse(write(problem), "here", capacity) == problem


def test_columns_are_found_by_name() -> None:
    problem = parse("size, id ,upper,lower,offset\n4,a,3,0,\n\n8,b,9,3,16\n", "here")
    assert problem.buffers == (Buffer("a", 0, 3, 4), Buffer("b", 3, 9, 8, offset=16))


def test_older_names_of_columns() -> None:
    """An `end` is the last live step."""
    text = "buffer_id,start,end,size\na,0,2,4\n"
    assert parse(text, "here") == parse("id,lower,upper,size\na,0,3,4\n", "here")


def test_an_assignment_is_written_as_offsets() -> None:
    assert write(Problem([Buffer("a", 0, 3, 4)]), [12]) == "id,lower,upper,size,offset\na,0,3,4,12\n"


REFUSED = {
    "no header": ("", "line 1", "no column 'id'"),
    "a missing column": ("id,lower,upper\n", "line 1", "no column 'size'"),
    "an unknown column": ("id,lower,upper,size,gaps\n", "line 1", "unknown column 'gaps'"),
    "a doubled column": ("id,lower,upper,size,size\n", "line 1", "two columns 'size'"),
    "a column by two names": ("id,lower,upper,end,size\n", "line 1", "two columns 'upper'"),
    "a missing field": ("id,lower,upper,size\na,0,1,2\nb,0,1\n", "line 3", "3 fields for 4 columns"),
    "no number": ("id,lower,upper,size\na,0,1,2.5\n", "line 2", "size '2.5' is not an integer"),
    "an empty number": ("id,lower,upper,size\na,0,,2\n", "line 2", "upper '' is not an integer"),
    "digits of other scripts": ("id,lower,upper,size\na,0,1,\u0662\n", "line 2", "is not an integer"),
    "a huge number": ("id,lower,upper,size\na,0,1,99999999999999999\n", "line 2", "not between 0 and 2^53"),
    "no lifetime": ("id,lower,upper,size\na,3,3,2\n", "line 2", "no lifetime"),
    "a negative size": ("id,lower,upper,size\na,0,3,-2\n", "line 2", "size is -2"),
    "no alignment": ("id,lower,upper,size,alignment\na,0,3,2,0\n", "line 2", "alignment is 0"),
    "a crooked offset": ("id,lower,upper,size,alignment,offset\na,0,3,2,4,6\n", "line 2", "not a multiple"),
    "a doubled id": ("id,lower,upper,size\na,0,3,2\na,1,3,2\n", "line 3", "'a' is in two rows"),
    "an open quote": ('id,lower,upper,size\n"a,0,3,2\n', "line 2", "unexpected end"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_wrong_is_refused_with_its_line(case: str) -> None:
    text, line, why = REFUSED[case]
    with pytest.raises(InvalidModelError) as caught:
        parse(text, "some.csv")
    assert caught.value.where == f"some.csv, {line}"
    assert why in str(caught.value)


@given(st.text(st.sampled_from('id,lowerupsz\n"0123456789 -'), max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    for header in ("", "id,lower,upper,size\n"):
        with contextlib.suppress(GcompError):
            parse(header + text, "here")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "absent.csv")
    (tmp_path / "latin.csv").write_bytes(b"id,lower,upper,size\n\xe9,0,1,2\n")
    with pytest.raises(UsageError, match="cannot be read"):
        read(tmp_path / "latin.csv")
