"""The laws of the choice of buckets: no other set of sizes costs less, and what is given to it is refused or used."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from gcomp.padding.buckets import Cost, choose_buckets, linear, polynomial, powers_of_two, price_buckets
from gcomp.testing.fuzz.laws import Law
from gcomp.testing.generate.choices import Choices

_COSTS: tuple[Cost, ...] = (linear, polynomial([0, 1, 0.25]), lambda size: float(size // 4))
_LONGEST, _MULTIPLES = 14, (1, 4)


def cheapest(counts: Mapping[int, int], most: int, sizes: list[int], cost: Cost) -> float:
    """What a histogram of lengths costs with the best of all sets of at most so many of the sizes, by trying them."""
    sets = (chosen for k in range(1, most + 1) for chosen in combinations(sizes, k) if chosen[-1] >= max(counts))
    return min(price_buckets(counts, chosen, cost).cost for chosen in sets)


def no_other_buckets_cost_less(choices: Choices) -> str:
    """The choice, beside all sets of sizes."""
    counts = {choices.integer(0, _LONGEST): choices.integer(1, 9) for _ in range(choices.integer(1, 6))}
    cost, multiple, most = choices.chosen(_COSTS), choices.chosen(_MULTIPLES), choices.integer(1, 4)
    least = choices.chosen((1, 1, 3))
    found = choose_buckets(counts, most, multiple_of=multiple, least=least, cost=cost)
    sizes = [size for size in range(least, _LONGEST + multiple + 1) if size % multiple == 0]
    best = cheapest(counts, most, sizes, cost)
    if abs(found.cost - best) > 1e-9 * max(1.0, best):
        return f"{found} for {counts}, at most {most} multiples of {multiple} from {least}: others cost {best}"
    if abs(price_buckets(counts, found.buckets, cost).cost - found.cost) > 1e-9 * max(1.0, best):
        return f"{found} says that {counts} cost another sum than they do"
    if len(found.buckets) > most or any(size % multiple or size < least for size in found.buckets):
        return f"{found} are no {most} multiples of {multiple} from {least}"
    return ""


def powers_hold_all(choices: Choices) -> str:
    """Powers of two, each holding a length that no lesser one holds."""
    lengths = [choices.integer(1, 70) for _ in range(choices.integer(1, 5))]
    most = max(lengths) + choices.integer(0, 3) if choices.flag() else None
    found = powers_of_two(lengths, most=most)
    wanted = sorted({min(1 << (n - 1).bit_length(), most if most is not None else 1 << 9) for n in lengths})
    return "" if list(found) == wanted else f"{found} for {lengths} up to {most}, not {wanted}"


LAWS: Mapping[str, Law] = {
    "no_other_buckets_cost_less": Law("choose_buckets", no_other_buckets_cost_less),
    "powers_of_two_hold_all_lengths": Law("powers_of_two", powers_hold_all),
}

__all__ = ["LAWS", "cheapest"]
