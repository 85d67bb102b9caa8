"""Mistakes in images of machine code and in their threads: distances, halves, alignment, sleep and wake."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from gcomp.lowering.llvm import codegen, threads
from gcomp.runtime.cpu.variants import VARIANTS, Variant
from tests.mutants import edits
from tests.mutants.mutant import control, mutant

RELOCATIONS, IMAGE = "lowering.llvm.relocations", "lowering.llvm.image"
image = partial(edits.wrong, target="image", classes=(44,))

# ---- distances between places ----

image(
    "image-pages-between-places", about="aarch64: the pages of a distance, not the distance of the pages",
    edits=[(f"{RELOCATIONS}:_page", "target // PAGE - place // PAGE", "(target - place) // PAGE")],
)  # fmt: skip
image(
    "image-bytes-for-units", about="aarch64: the place within a page in bytes where a load counts elements",
    edits=[(f"{RELOCATIONS}:_in_page", "_check_aligned(target % PAGE, unit) // unit",
            "_check_aligned(target % PAGE, unit)")],
)  # fmt: skip
image(
    "image-upper-half-not-rounded", about="riscv64: the lower half is signed, and the upper half does not know",
    edits=[(f"{RELOCATIONS}:_upper", "distance + 0x800", "distance")],
)  # fmt: skip
image(
    "image-store-loses-a-bit", about="riscv64: the highest bit of a store's offset is lost",
    edits=[(f"{RELOCATIONS}:_low_of_store", "distance >> 5 & 0x7F", "distance >> 5 & 0x3F")],
)  # fmt: skip
image(
    "image-lower-half-of-its-own-place", about="riscv64: the lower half of how far the upper half's place is",
    edits=[(f"{IMAGE}:_relocate", "work.code, place, distances[target]", "work.code, place, target - place")],
)  # fmt: skip
image(
    "image-distance-wraps", about="a distance that an instruction cannot hold is cut off",
    edits=[(f"{RELOCATIONS}:_check_signed", "not -(1 << bits - 1) <= value < 1 << bits - 1", "bits < 0")],
)  # fmt: skip
image(
    "image-addend-lost", about="every relocation leads to the begin of its symbol",
    edits=[(f"{IMAGE}:_resolve", "target + relocation.addend", "target")],
)  # fmt: skip

# ---- what lies where ----

image(
    "image-sections-not-aligned", about="constants lie where the code before them ends",
    edits=[(f"{IMAGE}:_lay_out", "-len(work.code) % max(section.alignment, 1)", "0")],
)  # fmt: skip
image(
    "image-symbols-at-sections", about="what another object defines is taken to be at the begin of its section",
    edits=[(f"{IMAGE}:_define", "globals[symbol.name] = place + symbol.offset", "globals[symbol.name] = place")],
)  # fmt: skip
image(
    "image-data-for-writing", about="data that code writes to is put where nothing can be written",
    edits=[(f"{IMAGE}:_lay_out", "elf.WRITABLE | elf.THREAD_LOCAL", "elf.THREAD_LOCAL")],
)  # fmt: skip
edits.right(
    "image-lower-halves-last-first", "image", about="lower halves do not depend on each other",
    edits=[(f"{IMAGE}:_relocate", "in later:", "in reversed(later):")],
)  # fmt: skip

# ---- threads ----


def _words(*pairs: tuple[str, str]) -> Callable[[], None]:
    """Other words in the IR of the pool. LookupError where they do not occur once, on any machine."""

    def apply() -> None:
        original = codegen.thread_pool

        def changed(variant: Variant) -> str:
            text = original(variant)
            for old, new in pairs:
                if text.count(old) != 1:
                    raise LookupError(f"{old!r} occurs {text.count(old)} times")
                text = text.replace(old, new)
            return text

        for variant in VARIANTS.values():
            changed(variant)
        codegen.thread_pool = changed

    return apply


def _pool(name: str, about: str, *pairs: tuple[str, str]) -> None:
    mutant(name, "pool", about=about, classes=(43,))(_words(*pairs))


_pool(
    "pool-parts-overlap", "a program at the end of a part is run by two threads",
    ("%end = udiv i64 %until, %parts", "%cut = udiv i64 %until, %parts\n  %end = add i64 %cut, 1"),
)  # fmt: skip
_pool(
    "pool-part-taken-twice", "a part is taken by a load and a store, and two threads may do so at once",
    ("%swapped = cmpxchg ptr %untaken.at, i64 %word, i64 %fewer acq_rel monotonic",
     "store atomic i64 %fewer, ptr %untaken.at release, align 8"),
    ("%taken = extractvalue { i64, i1 } %swapped, 1", "%taken = icmp ne i64 %word, 0"),
)  # fmt: skip
_pool(
    "pool-others-parts-are-theirs", "a thread leaves the parts of one that does not run",
    ("%more = icmp ult i64 %count, %threads", "%more = icmp ult i64 %count, 1"),
)  # fmt: skip
_pool(
    "pool-parts-of-the-wrong-end", "the parts of a thread are counted from its first one",
    ("%part = sub i64 %last, %untaken", "%part = add i64 %owner, %untaken"),
)  # fmt: skip
_pool(
    "pool-lone-sleeper", "one worker that sleeps alone is not woken",
    ("%any = icmp ne i32 %asleep, 0", "%any = icmp ugt i32 %asleep, 1"),
)  # fmt: skip
_pool(
    "pool-caller-leaves-early", "a call returns while one worker still runs its part",
    ("%done = icmp eq i32 %left, 0", "%done = icmp ule i32 %left, 1"),
)  # fmt: skip
_pool(
    "pool-last-wakes-nobody", "a caller that went to sleep is not woken by the last worker",
    ("br i1 %is.last, label %last.done, label %look", "br i1 false, label %last.done, label %look"),
)  # fmt: skip
_pool(
    "pool-caller-woken-for-nothing", "a caller that is woken takes it that all parts are done",
    ("%left.at, i32 %left, ptr %waiting, ptr %syscall)\n  br label %join",
     "%left.at, i32 %left, ptr %waiting, ptr %syscall)\n  br label %free.again"),
)  # fmt: skip
_pool(
    "pool-two-callers", "a second caller changes the kernel that workers run for the first",
    ("br i1 %got, label %fork, label %alone", "br label %fork"),
)  # fmt: skip
_pool(
    "pool-stays-busy", "after one call, every call is run by its caller alone",
    ("store atomic i32 0, ptr %busy release", "store atomic i32 1, ptr %busy release"),
)  # fmt: skip
_pool(
    "pool-flushing-workers", "workers compute with the mode of who started them, which may flush subnormals",
    ("  %old = call i64 @gcomp_numbers_begin()\n", ""),
)  # fmt: skip
_pool(
    "pool-threads-that-were-asked-for", "parts are cut for threads that could not be started",
    ("store i64 %number, ptr %threads.at\n  ret i64 %number", "store i64 %threads, ptr %threads.at\n  ret i64 %number"),
)  # fmt: skip


@control("pool-sleeps-at-once", "pool", about="how long is looked at a word before sleep")
def _() -> None:
    _words((f"icmp ult i32 %next, {threads._MACHINES['x86_64'].spins}", "icmp ult i32 %next, 2"))
