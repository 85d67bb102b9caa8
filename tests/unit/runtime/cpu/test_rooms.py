"""Memory of results is given out again once nobody holds it, and never before."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from gcomp.runtime.cpu import rooms
from gcomp.runtime.cpu.memory import address_of, result_array

SIZE = 1 << 20


def test_what_is_let_go_is_given_out_again() -> None:
    found = rooms.Rooms()
    first = found.take(SIZE)
    place = address_of(first)
    view = first[64:].view(np.float32)[2:]
    del first
    second = found.take(SIZE)
    assert address_of(second) != place
    del view
    assert address_of(found.take(SIZE)) == place
    assert address_of(found.take(SIZE + 64)) != place


@pytest.mark.parametrize("hold", [memoryview, lambda x: x.reshape(-1, 4).T, lambda x: np.frombuffer(x, np.int8)])
def test_every_kind_of_view_holds_a_room(hold: object) -> None:
    found = rooms.Rooms()
    kept = hold(found.take(SIZE))  # type: ignore[operator]
    others = [found.take(SIZE) for _ in range(3)]
    places = {address_of(x) for x in others}
    assert len(places) == 3
    assert address_of(np.asarray(kept)) not in places


def test_no_more_is_kept_than_was_said() -> None:
    found = rooms.Rooms(most=3 * SIZE)
    held = [found.take(SIZE) for _ in range(4)]
    assert len({address_of(x) for x in held}) == 4
    assert found.take(4 * SIZE).size == 4 * SIZE
    assert sum(len(queue) for queue in found._rooms.values()) <= 3  # pyright: ignore[reportPrivateUsage]


def test_threads_have_rooms_of_their_own() -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for _ in range(300):
            mine = result_array((SIZE // 8,), np.dtype(np.int64))
            mine[::4096] = number
            if not (mine[::4096] == number).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
