"""Garbage is collected rarely while IR is made, and as before afterwards."""

from __future__ import annotations

import gc
import threading

import pytest

from gcomp.collecting import OBJECTS, rare_collections


def test_thresholds_are_those_of_before() -> None:
    before = gc.get_threshold()
    with rare_collections():
        assert gc.get_threshold() == (OBJECTS, *before[1:])
        with rare_collections():
            assert gc.get_threshold() == (OBJECTS, *before[1:])
        assert gc.get_threshold() == (OBJECTS, *before[1:])
    assert gc.get_threshold() == before


def test_an_error_leaves_them_too() -> None:
    before = gc.get_threshold()
    with pytest.raises(KeyError), rare_collections():
        raise KeyError
    assert gc.get_threshold() == before


@pytest.mark.parametrize("own", [0, OBJECTS + 1])
def test_rarer_collections_stay_so(own: int) -> None:
    """Also none: a threshold of 0 turns the collector off."""
    before = gc.get_threshold()
    try:
        gc.set_threshold(own)
        with rare_collections():
            assert gc.get_threshold()[0] == own
    finally:
        gc.set_threshold(*before)


def test_bodies_that_overlap_in_threads_leave_the_first_ones() -> None:
    before = gc.get_threshold()
    inside, leave = threading.Event(), threading.Event()

    def other() -> None:
        with rare_collections():
            inside.set()
            leave.wait()

    thread = threading.Thread(target=other)
    with rare_collections():
        thread.start()
        inside.wait()
    assert gc.get_threshold()[0] == OBJECTS
    leave.set()
    thread.join()
    assert gc.get_threshold() == before
