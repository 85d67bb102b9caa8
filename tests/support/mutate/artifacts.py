"""Mutations of artifacts: of their bytes, of their zip structure, and, sealed again, of what they say.

A mutant that is not sealed differs from what was written, so it must be refused. A sealed one passes every checksum:
it is what somebody could have made on purpose, and reaches the checks of meaning behind them.
"""

from __future__ import annotations

import copy
import hashlib
import io
import json
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, NamedTuple, cast

from gcomp.runtime import zipform
from gcomp.runtime.artifact import MANIFEST, WEIGHTS
from gcomp.testing.mutate import texts
from gcomp.testing.mutate.harness import Case

Members = dict[str, bytes]
Json = Any

_NUMBERS = (
    0, 1, -1, 2, 3, 64, 255, 65535, 2**31, 2**32, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 1.0, 0.5, -0.0, 1e308,
)  # fmt: skip
_TEXTS = (
    "", "x", "f32", "f64", "i1", "i4", "bf16", "complex<f64>", "f128", "batch", "2*batch", "batch + 1", "-1", "0", "1",
    "4294967296", "9" * 30, "9" * 5000, "other", "batch floordiv 0", "a*b*c*d*e*f", "(" * 3000, "main.mlir", "host",
    "weights.safetensors", "manifest.json", "../x", "/etc/passwd", "xla:cpu", "xla:cuda", "triton:sm_90", "device",
    "return", "nonzero", "os.system", "__class__", "{}", '{"kind": "le"}', "[" * 5000, "null", "\x00", "\ud800", "é",
    "0" * 64, "f" * 64, "x" * 100_000, "XLA", "__pad_0", "__metadata__", "xla_dump_to", "batch.shape[0]",
)  # fmt: skip
_OTHERS: tuple[Json, ...] = (
    None, True, False, [], {}, [[]], {"": 0}, [0], [0, 0], ["x"], {"tuple": [0]}, {"list": [[0]]}, {"dict": [["a", 0]]},
    {"constant": 1}, {"kind": "host"}, {"always": {"xla_dump_to": "/tmp/x"}},
)  # fmt: skip


class Mutant(NamedTuple):
    """The bytes of a mutated artifact, and whether its hashes are right."""

    data: bytes
    sealed: bool


@dataclass(frozen=True)
class Sample:
    """An artifact taken apart: its bytes, and its members in order, the manifest last."""

    data: bytes
    members: Mapping[str, bytes]

    @staticmethod
    def of(data: bytes) -> Sample:
        """Take the bytes of an artifact apart."""
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            return Sample(data, {name: archive.read(name) for name in archive.namelist()})

    def manifest(self) -> dict[str, Json]:
        """A copy of the manifest."""
        return cast("dict[str, Json]", json.loads(self.members[MANIFEST]))


def cases(samples: Sequence[Sample], count: int, seed: int = 0, *, sealed: bool = True) -> Iterator[Case[Mutant]]:
    """`count` mutants: each sample in turn, each from a seed of its own. Unsealed mutants only with `sealed=False`."""
    mutators = MUTATORS if sealed else UNSEALED
    for i in range(count):
        chance, sample = Random(f"artifact {seed} {i}"), samples[i % len(samples)]
        mutator = chance.choice(mutators)
        yield Case(f"artifact {seed} {i}", mutator.__name__, Mutant(mutator(chance, sample), mutator not in UNSEALED))


# ---- sealing ----


def pack(members: Mapping[str, bytes]) -> bytes:
    """The canonical zip of these members, whatever they hold."""
    parts, placed, end = list[bytes](), list[zipform.Placed](), 0
    for name, data in members.items():
        place = zipform.place(zipform.Entry(name, len(data), zlib.crc32(data)), end)
        placed.append(place)
        parts += (zipform.local_header(place.entry, end), data)
        end = place.end
    directory = zipform.central_directory(placed)
    return b"".join([*parts, directory, zipform.end_records(len(placed), end, len(directory))])


def seal(manifest: Json, members: Members, *, table: bool = True) -> bytes:
    """The artifact of a manifest and its members, with the manifest's table of members filled in unless not `table`."""
    if table and isinstance(manifest, dict):
        rows = {name: {"sha256": hashlib.sha256(data).hexdigest(), "size": len(data)} for name, data in members.items()}
        manifest = {**cast("dict[str, Json]", manifest), "members": rows}
    text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
    return pack({**dict(sorted(members.items())), MANIFEST: text.encode("utf-8", "surrogatepass")})


def parts(sample: Sample) -> tuple[dict[str, Json], Members]:
    """A copy of a sample's manifest, and its other members."""
    return sample.manifest(), {name: data for name, data in sample.members.items() if name != MANIFEST}


# ---- what is not sealed ----


def flip_bits(chance: Random, sample: Sample) -> bytes:
    """Flip one to three bits."""
    data = bytearray(sample.data)
    for _ in range(chance.randint(1, 3)):
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


def truncate(chance: Random, sample: Sample) -> bytes:
    """Cut the end or the beginning off."""
    place = chance.randrange(len(sample.data))
    return chance.choice((sample.data[:place], sample.data[place + 1 :], sample.data[: -1 - place % 100]))


def splice(chance: Random, sample: Sample) -> bytes:
    """Insert, delete, repeat or zero a run of bytes."""
    data, start, length = sample.data, chance.randrange(len(sample.data)), chance.choice((1, 2, 4, 64, 100, 4096))
    run = data[start : start + length]
    replacement = chance.choice((b"", run + run, bytes(len(run)), chance.randbytes(length), b"\xff" * len(run)))
    return data[:start] + replacement + data[start + length :]


def surround(chance: Random, sample: Sample) -> bytes:
    """Put something before or behind the artifact: a comment, another artifact, an executable's magic."""
    extra = chance.choice(
        (b"\0", b"PK\x05\x06" + bytes(18), b"\x7fELF", sample.data, chance.randbytes(65), b"#!/bin/sh\n")
    )
    return chance.choice((extra + sample.data, sample.data + extra))


def change_header(chance: Random, sample: Sample) -> bytes:
    """Write an extreme value into a field of one of the zip's headers."""
    data = bytearray(sample.data)
    magic = chance.choice((b"PK\x03\x04", b"PK\x01\x02", b"PK\x05\x06"))
    places = [i for i in range(len(data)) if data.startswith(magic, i)]
    place = chance.choice(places) + 2 * chance.randrange(23)
    width = chance.choice(("<H", "<I", "<Q"))
    value = chance.choice((0, 1, 8, 20, 45, 0xFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, len(data), chance.getrandbits(64)))
    field = struct.pack(width, value & ((1 << 8 * struct.calcsize(width)) - 1))
    data[place : place + len(field)] = field
    return bytes(data)


def change_name(chance: Random, sample: Sample) -> bytes:
    """Rename a member in its headers, to a path, another member's name or an odd one of equal length."""
    old = chance.choice(list(sample.members)).encode()
    choices = (
        b"../" + old[3:],
        b"/" + old[1:],
        old.upper(),
        old[:-1] + b"\0",
        old[:-1] + b"\xff",
        b"." * len(old),
        old[::-1],
    )
    return sample.data.replace(old, chance.choice(choices), chance.choice((1, 2, -1)))


def repack(chance: Random, sample: Sample) -> bytes:
    """Write the same members as another program would: compressed, in another order, with other times or comments."""
    stream, names = io.BytesIO(), list(sample.members)
    chance.shuffle(names)
    if chance.random() < 0.3:
        names.append(chance.choice(names))
    with (
        warnings.catch_warnings(action="ignore"),
        zipfile.ZipFile(stream, "w", chance.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive,
    ):
        archive.comment = chance.choice((b"", b"comment"))
        for name in names:
            info = zipfile.ZipInfo(name, chance.choice(((1980, 1, 1, 0, 0, 0), (2024, 2, 3, 4, 5, 6))))
            archive.writestr(info, sample.members[name])
    return stream.getvalue()


def change_members(chance: Random, sample: Sample) -> bytes:
    """Leave a member out, empty it, add one, or exchange two, in a well-formed zip."""
    members, name = dict(sample.members), chance.choice(list(sample.members))
    match chance.randrange(5):
        case 0:
            del members[name]
        case 1:
            members[name] = b""
        case 2:
            members = {"a-first": b"x", **members} if chance.random() < 0.5 else {**members, "z-last": b"x"}
        case 3:
            members = dict(reversed(members.items()))
        case _:
            other = chance.choice([n for n in members if n != name])
            members[name], members[other] = members[other], members[name]
    return pack(members)


_NUMBER = re.compile(rb":([0-9]+)")
"""A number in JSON, and not a digit in a string."""


def change_manifest_text(chance: Random, sample: Sample) -> bytes:
    """Write the manifest otherwise than canonically, or as something else than JSON."""
    text = sample.members[MANIFEST]
    changed = chance.choice((
        text + b"\n", b"\xef\xbb\xbf" + text, text[:-1], text[: len(text) // 2], b"", b"{}", b"null", b"[]", b"1",
        text.replace(b":", b": ", 1), text.replace(b'"', b"'"), text.replace(b"{", b'{"a":1,"a":2,', 1),
        _NUMBER.sub(rb":\g<1>.0", text, 1), _NUMBER.sub(b":NaN", text, 1), _NUMBER.sub(b":" + b"1" * 5000, text, 1),
        text.replace(b"e", b"\\u0065", 1), text.replace(b"null", b"1e999", 1), text.decode().encode("utf-16"),
        b"[" * 100_000, b'{"a":' * 10_000, b'"' + b'\\"' * 50_000,
    ))  # fmt: skip
    return pack({**sample.members, MANIFEST: changed})


def forget_to_seal(chance: Random, sample: Sample) -> bytes:
    """Change a member's data in a well-formed zip, and leave the manifest's hashes as they were."""
    name = chance.choice([n for n, data in sample.members.items() if n != MANIFEST and data])
    data = bytearray(sample.members[name])
    data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return pack({**sample.members, name: bytes(data)})


# ---- what is sealed ----


def _places(value: Json, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    items: list[tuple[Any, Json]] = []
    if isinstance(value, dict):
        items = list(cast("dict[str, Json]", value).items())
    elif isinstance(value, list):
        items = list(enumerate(cast("list[Json]", value)))
    for key, item in items:
        yield (*path, key)
        yield from _places(item, (*path, key))


def change_json(chance: Random, value: Json) -> None:
    """Change one thing inside a JSON object or array, in place."""
    places = list(_places(value))
    if not places:  # earlier changes may have left nothing
        return
    path = chance.choice(places)
    holder: Any = value
    for key in path[:-1]:
        holder = holder[key]
    key, old = path[-1], holder[path[-1]]
    match chance.randrange(10):
        case 0:
            del holder[key]
        case 1 if isinstance(holder, list):
            cast("list[Json]", holder).insert(chance.randrange(len(cast("list[Json]", holder)) + 1), copy.deepcopy(old))
        case 1:
            holder[f"{key}x"] = holder.pop(key)
        case 2 if isinstance(old, list):
            cast("list[Json]", old).reverse()
        case 3:
            holder[key] = copy.deepcopy(chance.choice(_OTHERS))
        case 4:
            other: Any = value
            for step in chance.choice(places):
                other = other[step]
            holder[key] = copy.deepcopy(other)
        case 5:
            holder[key] = [old]
        case _:
            holder[key] = _like(chance, old)


def _like(chance: Random, old: Json) -> Json:
    """Another value of the same kind."""
    match old:
        case bool():
            return not old
        case int() | float():
            return chance.choice((old + 1, old - 1, chance.choice(_NUMBERS)))
        case str():
            return chance.choice((chance.choice(_TEXTS), old + "x", old[1:], old[::-1], old.upper()))
        case None:
            return chance.choice((0, 1, "x", 10**30))
        case _:
            return copy.deepcopy(chance.choice(_OTHERS))


def change_manifest(chance: Random, sample: Sample) -> bytes:
    """Change what the manifest says, once or a few times."""
    manifest, members = parts(sample)
    table = chance.random() < 0.9
    if table:
        del manifest["members"]
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        change_json(chance, manifest)
    return seal(manifest, members, table=table)


def change_plan(chance: Random, sample: Sample) -> bytes:
    """Change the plan's steps, the signature or the weights' table, where a mistake would run."""
    manifest, members = parts(sample)
    keys = [k for k in ("segments", "inputs", "outputs", "weights", "symbols", "result") if manifest[k]]
    part = {key: manifest[key] for key in chance.sample(keys, chance.randint(1, len(keys)))}
    for _ in range(chance.choice((1, 1, 2))):
        change_json(chance, part)
    return seal({**manifest, **part}, members)


def change_constraint(chance: Random, sample: Sample) -> bytes:
    """Change a constraint, which is JSON inside of a string, or add one that is wrong."""
    manifest, members = parts(sample)
    constraints = cast("list[str]", manifest["constraints"])
    parsed: Json = [json.loads(text) for text in constraints] or [
        {"kind": "le", "lhs": "batch", "rhs": "2", "where": "x"}
    ]
    change_json(chance, parsed)
    made: list[Json] = [json.dumps(item) for item in cast("list[Json]", parsed)]
    odd: Json = chance.choice((*_TEXTS, "[" * 100_000, '{"kind":' * 500, "1e999", "NaN"))
    manifest["constraints"] = made if chance.random() < 0.7 else [*constraints, odd]
    return seal(manifest, members)


def change_template(chance: Random, sample: Sample) -> bytes:
    """Change the text of a program."""
    manifest, members = parts(sample)
    name = chance.choice([n for n in members if n != WEIGHTS])
    old = members[name].decode()
    holes = (
        "{{batch}}", "{{", "}}", "{{}}", "{{batch*batch*batch}}", "{{ batch }}", "{{unknown}}", "{{2**64}}", "{{1}}",
        "{{" * 5000, "{{" + "(" * 3000 + "}}", "{{batch floordiv 0}}",
    )  # fmt: skip
    if chance.random() < 0.4:
        place = chance.randrange(len(old) + 1)
        new = old[:place] + chance.choice(holes) + old[place:]
    else:
        new, _ = texts.mutate(chance, old)
    members[name] = new.encode("utf-8", "surrogatepass")
    return seal(manifest, members)


CALLS = (
    "stablehlo.custom_call @{0}() {{has_side_effect = true}} : () -> ()",
    'stablehlo.custom_call @"{0}"() {{has_side_effect = true}} : () -> ()',
    "stablehlo.custom_call // c\n @{0}() {{has_side_effect = true}} : () -> ()",
    '"stablehlo.custom_call"() {{call_target_name = "{0}", has_side_effect = true}} : () -> ()',
    '"stablehlo.custom_call"() <{{call_target_name = "{0}", has_side_effect = true}}> : () -> ()',
    '"stablehlo.custom_call"() {{"call_target_name" = "{0}", has_side_effect = true}} : () -> ()',
    '"stablehlo.custom_call"() {{call_target_name // "Sharding"\n = "{0}", has_side_effect = true}} : () -> ()',
    '"stablehlo.custom\\5Fcall"() {{"call\\5Ftarget\\5Fname" = "{0}", has_side_effect = true}} : () -> ()',
    '"mhlo.custom_call"() {{call_target_name = "{0}", has_side_effect = true}} : () -> ()',
    '"vhlo.custom_call_v1"() <{{call_target_name = #vhlo.string_v1<"{0}">}}> : () -> ()',
)
"""Ways in which a program's text can call a custom function, with the function's name left open."""


def call_function(chance: Random, sample: Sample) -> bytes:
    """Let a program call a custom function that gcomp does not allow, spelled in every way that XLA may read."""
    manifest, members = parts(sample)
    name = chance.choice([n for n in members if n != WEIGHTS])
    target = chance.choice(("xla_python_cpu_callback", "xla_ffi_python_cpu_callback", "lapack_x", "none", "mhlo.topk2"))
    lines = members[name].decode().splitlines(keepends=True)
    bodies = [i + 1 for i, line in enumerate(lines) if line.rstrip().endswith("{") and "func" in line]
    lines.insert(chance.choice(bodies), chance.choice(CALLS).format(target) + "\n")
    members[name] = "".join(lines).encode()
    return seal(manifest, members)


def change_weights(chance: Random, sample: Sample) -> bytes:
    """Change the weights' header, layout or data; the member's hash is made right, and sometimes each tensor's."""
    manifest, members = parts(sample)
    if WEIGHTS not in members:
        members[WEIGHTS] = chance.choice((b"", bytes(8), b"\xff" * 8 + b"{}", (2).to_bytes(8, "little") + b"{}"))
        return seal(manifest, members)
    data = bytearray(members[WEIGHTS])
    header = 8 + int.from_bytes(data[:8], "little")
    match chance.randrange(5):
        case 0:
            data[:8] = chance.choice((0, 1, 2**63, 2**64 - 1, len(data), header)).to_bytes(8, "little")
        case 1:
            data[chance.randrange(8, header)] ^= 1 << chance.randrange(8)
        case 2:
            place = chance.randrange(header, len(data))
            data[place] ^= 1 << chance.randrange(8)
        case 3:
            del data[chance.randrange(len(data)) :]
        case _:
            data += bytes(chance.randint(1, 100))
    members[WEIGHTS] = bytes(data)
    if chance.random() < 0.3:
        for row in cast("list[dict[str, Json]]", manifest["weights"]):
            row["sha256"] = hashlib.sha256(bytes(data[header:])).hexdigest()
    return seal(manifest, members)


Mutator = Callable[[Random, Sample], bytes]

UNSEALED: tuple[Mutator, ...] = (
    flip_bits, truncate, splice, surround, change_header, change_name, repack, change_members, change_manifest_text,
    forget_to_seal,
)  # fmt: skip
"""Mutators whose results differ from anything that gcomp writes."""

MUTATORS: tuple[Mutator, ...] = (
    *UNSEALED, change_manifest, change_manifest, change_plan, change_plan, change_constraint, change_template,
    call_function, change_weights,
)  # fmt: skip
"""Every mutator of artifacts; those of meaning count twice."""
