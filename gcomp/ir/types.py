"""Tensor types with symbolic dimensions.

A static dimension lives in the tensor type itself. When any dimension is symbolic, the type carries an encoding:
an array of strings, one per dimension, in the canonical form of `gcomp.dims`
(`tensor<?x3xf32, ["2*batch", "3"]>`). A bare `?` without an encoding is an *unknown* dimension: it parses (jaxlib
prints it for the `dynamic_*` ops) and is compatible with every size, but no gcomp pass creates it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, TypeAlias, cast

from typing_extensions import TypeIs
from xdsl.dialects import builtin as bi
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr, NoneAttr, StringAttr, TensorType
from xdsl.ir import Attribute, BlockArgument, OpResult, ParametrizedAttribute, SSAValue

from gcomp import dims
from gcomp.dims import Size

Tensor: TypeAlias = TensorType[Attribute]

UNKNOWN = dims.symbol("_")
"""The size of a dimension about which nothing is known (a bare `?`)."""

_UNSIGNED = {f"ui{w}": bi.IntegerType(w, bi.Signedness.UNSIGNED) for w in (2, 4, 8, 16, 32, 64)}
_SIGNLESS = {f"i{w}": bi.IntegerType(w) for w in (1, 2, 4, 8, 16, 32, 64)}
_FLOATS: dict[str, Attribute] = {
    "f64": bi.f64,
    "f32": bi.f32,
    "f16": bi.f16,
    "bf16": bi.bf16,
    "f8E5M2": bi.Float8E5M2Type(),
    "f8E4M3": bi.Float8E4M3Type(),
    "f8E4M3FN": bi.Float8E4M3FNType(),
    "f8E5M2FNUZ": bi.Float8E5M2FNUZType(),
    "f8E4M3FNUZ": bi.Float8E4M3FNUZType(),
    "f8E4M3B11FNUZ": bi.Float8E4M3B11FNUZType(),
    "f8E3M4": bi.Float8E3M4Type(),
    "f8E8M0FNU": bi.Float8E8M0FNUType(),
    "f6E2M3FN": bi.Float6E2M3FNType(),
    "f6E3M2FN": bi.Float6E3M2FNType(),
    "f4E2M1FN": bi.Float4E2M1FNType(),
}
_COMPLEX: dict[str, Attribute] = {
    "complex<f32>": bi.ComplexType(bi.f32),
    "complex<f64>": bi.ComplexType(bi.f64),
}
ELEMENT_TYPES: dict[str, Attribute] = {**_FLOATS, **_SIGNLESS, **_UNSIGNED, **_COMPLEX}
"""Every element type of the graph level, keyed by its text (the keys of `gcomp.reference.numpy.dtypes`)."""

_TEXTS: dict[Attribute, str] = {attr: text for text, attr in ELEMENT_TYPES.items()}
_TEXTS_BY_IDENTITY = {id(attr): text for attr, text in _TEXTS.items()}
"""Most element types are these very objects, and hashing an attribute takes four times as long."""

BOOL = ELEMENT_TYPES["i1"]
INTEGERS = frozenset(a for t, a in {**_SIGNLESS, **_UNSIGNED}.items() if t != "i1")
SIGNED = frozenset(a for t, a in _SIGNLESS.items() if t != "i1")
FLOATS = frozenset(_FLOATS.values())
COMPLEX = frozenset(_COMPLEX.values())
ALL = frozenset(ELEMENT_TYPES.values())


def element_type(text: str) -> Attribute:
    """The element type with the text `text` (`"f32"`, `"ui8"`, `"complex<f32>"`). KeyError if there is none."""
    return ELEMENT_TYPES[text]


def dtype_text(type: Attribute) -> str:
    """The text of a tensor's element type, or of an element type."""
    # Most are one of these very objects, and to ask whether something else is a tensor takes longer.
    if (known := _TEXTS_BY_IDENTITY.get(id(type))) is not None:
        return known
    element = type.element_type if is_tensor(type) else type
    return _TEXTS_BY_IDENTITY.get(id(element)) or _TEXTS.get(element) or str(element)


@lru_cache(maxsize=8192)
def _tensor(shape: tuple[Size, ...], element: Attribute) -> Tensor:
    # An element type that was read from text is another object: the first to ask must not decide which one all get.
    element = ELEMENT_TYPES.get(_TEXTS.get(element, ""), element)
    if all(isinstance(s, int) for s in shape):
        return TensorType(element, cast("tuple[int, ...]", shape))
    sizes = [s if isinstance(s, int) else DYNAMIC_INDEX for s in shape]
    if all(isinstance(s, int) or s == UNKNOWN for s in shape):
        return TensorType(element, sizes)
    return TensorType(element, sizes, ArrayAttr([StringAttr(str(s)) for s in shape]))


def tensor(shape: Sequence[Size], element: Attribute | str) -> Tensor:
    """The tensor type of `shape` (ints and dims) and an element type or its text; equal arguments give one object."""
    return _tensor(tuple(shape), ELEMENT_TYPES[element] if isinstance(element, str) else element)


_VALUES = (OpResult, BlockArgument, SSAValue)
"""Python compares an object's very class first, and asks the abstract one only then: that takes ten times as long."""


def is_tensor(type: Attribute) -> TypeIs[Tensor]:
    """Whether a type is a ranked tensor."""
    return isinstance(type, TensorType)


def tensor_of(value: SSAValue | Attribute) -> Tensor:
    """The tensor type of a value or of a type. TypeError when it is not a ranked tensor."""
    if value.__class__ is TensorType:  # the very class first, as with `_VALUES`
        return cast("Tensor", value)
    type = value.type if isinstance(value, _VALUES) else value
    if not is_tensor(type):
        raise TypeError(f"expected a ranked tensor, got {type}")
    return type


@lru_cache(maxsize=8192)
def _symbolic_shape(static: tuple[int, ...], encoding: Attribute) -> tuple[Size, ...]:
    if not isinstance(encoding, ArrayAttr):
        return tuple(UNKNOWN if s == DYNAMIC_INDEX else s for s in static)
    texts = cast("ArrayAttr[StringAttr]", encoding).data
    return tuple(dims.parse(t.data) if s == DYNAMIC_INDEX else s for s, t in zip(static, texts, strict=True))


_SHAPES: dict[int, tuple[Tensor, tuple[Size, ...]]] = {}
"""The identity of a type -> the type, which keeps its identity from another's, and its shape."""

_MOST_SHAPES = 8192


def shape_of(value: SSAValue | Attribute) -> tuple[Size, ...]:
    """The shape of a tensor value or type: ints, and dims where symbolic."""
    type = tensor_of(value)
    found = _SHAPES.get(id(type))
    if found is not None:
        return found[1]
    static = tuple([s.data for s in type.shape.data])
    shape = _symbolic_shape(static, type.encoding) if DYNAMIC_INDEX in static else static
    if len(_SHAPES) >= _MOST_SHAPES:
        _SHAPES.clear()
    _SHAPES[id(type)] = type, shape
    return shape


def static_shape(value: SSAValue | Attribute) -> tuple[int, ...] | None:
    """The shape when every dimension is an int, else None."""
    shape = shape_of(value)
    return cast("tuple[int, ...]", shape) if all(isinstance(s, int) for s in shape) else None


def element_of(value: SSAValue | Attribute) -> Attribute:
    """The element type of a tensor value or type."""
    return tensor_of(value).element_type


def real_element(value: SSAValue | Attribute) -> Attribute:
    """The element type, or its real part's type when it is complex."""
    element = element_of(value)
    return cast("bi.ComplexType[Any]", element).element_type if isinstance(element, bi.ComplexType) else element


def rank_of(value: SSAValue | Attribute) -> int:
    """The rank of a tensor value or type."""
    return len(tensor_of(value).shape.data)


def with_shape(value: SSAValue | Attribute, shape: Sequence[Size]) -> Tensor:
    """The type of `value` with another shape."""
    return tensor(shape, element_of(value))


def converted_type(x: SSAValue, root: SSAValue) -> Tensor:
    """The shape of `x` with the element type of `root`: what a rule gives a conversion that it moves."""
    return with_element(x, element_of(root))


def retype(value: SSAValue, type: Attribute) -> None:
    """Give a value another type, in place: what it is computed by and read by must allow it."""
    object.__setattr__(value, "_type", type)


def with_element(value: SSAValue | Attribute, element: Attribute | str) -> Tensor:
    """The type of `value` with another element type."""
    return tensor(shape_of(value), element)


def same_size(a: Size, b: Size) -> bool:
    """Whether two sizes are the same formula; an unknown size is the same as any."""
    return a == b or "_" in dims.symbols_of(a) or "_" in dims.symbols_of(b)


def differ_always(a: Size, b: Size) -> bool:
    """Whether two sizes differ for every value of their symbols (from 0 on: a data-dependent symbol may be 0)."""
    return not same_size(a, b) and _FROM_ZERO.equal(a, b) is False


def below(a: Size, b: Size) -> bool:
    """Whether `a < b` for every value of the symbols (from 0 on); False where it is not known."""
    if isinstance(a, int) and isinstance(b, int):
        return a < b
    return "_" not in dims.symbols_of(a - b) and _FROM_ZERO.less_equal(b, a) is False


class _FromZero(dims.Ranges):
    """Ranges that say of no symbol more than that it is a size."""

    DEFAULT = dims.Range(0)


_FROM_ZERO = _FromZero()


def same_shape(a: Sequence[Size], b: Sequence[Size]) -> bool:
    """Whether two shapes are the same, size by size."""
    return len(a) == len(b) and all(x == y or same_size(x, y) for x, y in zip(a, b, strict=True))


def compatible(a: Attribute, b: Attribute) -> bool:
    """Whether two types are the same up to unknown dimensions."""
    if a == b:
        return True
    if not (is_tensor(a) and is_tensor(b)):
        return False
    return element_of(a) == element_of(b) and same_shape(shape_of(a), shape_of(b))


def check_element(type: Attribute) -> str | None:
    """Why a tensor's elements are of no type that programs hold, or None when they are.

    Sizes are of type `index`; `!quant.uniform` is a type that xDSL does not know.
    """
    if not is_tensor(type):
        return None
    element = type.element_type
    if (
        id(element) in _TEXTS_BY_IDENTITY
        or element in _TEXTS
        or isinstance(element, bi.IndexType | bi.UnregisteredAttr)
    ):
        return None
    parts = ": the parts of complex numbers are f32 or f64" if isinstance(element, bi.ComplexType) else ""
    return f"{element} is no element type{parts}"


def check_encoding(type: Attribute) -> str | None:
    """Why the type's encoding is not gcomp's canonical one, or None when it is."""
    if not is_tensor(type) or isinstance(encoding := type.encoding, NoneAttr):
        return None
    if not isinstance(encoding, ArrayAttr):
        return f"tensor encoding {encoding} is not an array of dimension strings"
    texts: list[Any] = list(cast("ArrayAttr[Attribute]", encoding).data)
    if len(texts) != rank_of(type) or not all(isinstance(x, StringAttr) for x in texts):
        return f"tensor encoding {type.encoding} needs one string per dimension"
    for size, text in zip((s.data for s in type.shape.data), texts, strict=True):
        if why := _check_dim(size, text.data):
            return why
    return None


@lru_cache(maxsize=8192)
def _check_dim(size: int, text: str) -> str | None:
    try:
        parsed = dims.parse(text)
    except dims.DimError as error:
        return f"dimension {text!r} does not parse: {error}"
    if str(parsed) != text:
        return f"dimension {text!r} is not canonical, write {str(parsed)!r}"
    if (size == DYNAMIC_INDEX) != (not isinstance(parsed, int)) or (size != DYNAMIC_INDEX and parsed != size):
        return f"dimension {text!r} disagrees with the size in the shape"
    return None


def map_dims(type: Attribute, change: Callable[[Size], Size]) -> Attribute:
    """The type with `change` applied to each symbolic dimension, those of a tuple's elements included."""
    if is_tensor(type):
        if static_shape(type) is not None:
            return type
        return tensor([s if isinstance(s, int) else change(s) for s in shape_of(type)], element_of(type))
    if isinstance(type, ArrayAttr):
        return ArrayAttr([map_dims(t, change) for t in cast("ArrayAttr[Attribute]", type).data])
    if isinstance(type, ParametrizedAttribute):
        return type.new([map_dims(t, change) for t in type.parameters])
    return type
