"""The algebra of symbolic tensor dimensions. A size is an `int` or a `Dim`; depends on nothing but Python.

`algebra` has canonical sizes and division, `functions` minima, maxima and substitution, `text` the parser,
`ranges` what is known about symbols, `binding` the solver that meets actual sizes.
"""

from __future__ import annotations

from gcomp.dims.algebra import (
    Atom,
    Dim,
    DimError,
    DimLimitError,
    Size,
    atom_size,
    ceildiv,
    evaluate,
    exact_div,
    floordiv,
    mod,
    reduce_modulo,
    symbol,
    terms_of,
)
from gcomp.dims.binding import (
    Constraint,
    ConstraintKind,
    bind,
    broadcast_dim,
    size_from_json,
    size_to_json,
)
from gcomp.dims.functions import dmax, dmin, product, replace_atoms, substitute, symbols_of
from gcomp.dims.least import least_sizes
from gcomp.dims.narrowing import narrowed
from gcomp.dims.ranges import DimSpec, Range, Ranges, comparisons, parse_range, range_of
from gcomp.dims.text import parse

__all__ = [
    "Atom",
    "Constraint",
    "ConstraintKind",
    "Dim",
    "DimError",
    "DimLimitError",
    "DimSpec",
    "Range",
    "Ranges",
    "Size",
    "atom_size",
    "bind",
    "broadcast_dim",
    "ceildiv",
    "comparisons",
    "dmax",
    "dmin",
    "evaluate",
    "exact_div",
    "floordiv",
    "least_sizes",
    "mod",
    "narrowed",
    "parse",
    "parse_range",
    "product",
    "range_of",
    "reduce_modulo",
    "replace_atoms",
    "size_from_json",
    "size_to_json",
    "substitute",
    "symbol",
    "symbols_of",
    "terms_of",
]
