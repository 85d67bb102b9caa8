"""The threads of an image: a pool that runs the programs of a kernel, as LLVM IR.

A pool is memory that its owner gives, and threads that it starts with functions of a C library whose addresses it is
given. A call cuts its programs into parts, some for each thread, and raises `generation`, for which the workers wait.
Each thread takes parts one by one, its own first and then what others have left, so that a call waits only for parts
that run: a worker that the system does not let run holds nobody up. `left` counts the parts that are not done. Who
waits looks at the word some thousand times, counts itself as asleep, and sleeps in the kernel until the word changes
(a futex); who changes the word wakes only those who sleep. A pool serves one call at a time, and a second one that
comes meanwhile runs all programs by itself.

    0  generation  i32      64  kernel    ptr      128  left     i32      192  busy          i32
    4  sleepers    i32      72  args      ptr      132  waiting  i32      200  pthread_join  ptr
                            80  programs  i64                             208  syscall       ptr
                            88  threads   i64
                            96  parts     i64
    256 + 64 t  of thread t:  0 pthread_t   8 pool ptr   16 number i64   24 untaken i64

Thread t's parts are those from t parts / threads up to the next thread's. The lower half of `untaken` says how many of
them nobody has taken, and the upper half is the generation: who takes one swaps the whole word, so that what it read of
the call before (the kernel, its arguments) is this call's, which cannot end while a part of it is untaken or runs.
"""

from __future__ import annotations

from collections.abc import Mapping

from gcomp.records import record
from gcomp.runtime.cpu.variants import Variant

HEADER, WORKER = 256, 64
"""A pool takes so many bytes, and so many more for each thread."""

PARTS = 4
"""Parts of a call for each thread: with more the threads end closer together, and each costs some 20 ns."""


@record
class _Machine:
    """What differs between machines.

    `futex` is the number of the system call; `pause` waits a little, `spins` times in some 20 to 50 us. `current` reads
    the mode of arithmetic as an i64 `%old`, `plain` is IEEE's (rounding to the nearest, with subnormals, without
    traps) in those bits of it that `mask` has, and `set` makes `%mode` the mode.
    """

    futex: int
    pause: str
    spins: int
    declared: str
    current: str
    set: str
    plain: int
    mask: int


_MACHINES: Mapping[str, _Machine] = {
    "x86_64": _Machine(
        futex=202,
        pause="call void @llvm.x86.sse2.pause()",
        spins=1000,
        declared="""\
declare void @llvm.x86.sse2.pause()
declare void @llvm.x86.sse.stmxcsr(ptr)
declare void @llvm.x86.sse.ldmxcsr(ptr)""",
        current="""\
  %place = alloca i32
  call void @llvm.x86.sse.stmxcsr(ptr %place)
  %word = load i32, ptr %place
  %old = zext i32 %word to i64""",
        set="""\
  %place = alloca i32
  %word = trunc i64 %mode to i32
  store i32 %word, ptr %place
  call void @llvm.x86.sse.ldmxcsr(ptr %place)""",
        plain=0x1F80,
        mask=0xFFC0,  # without the flags of what came up
    ),
    "aarch64": _Machine(
        futex=98,
        pause="call void @llvm.aarch64.isb(i32 15)",
        spins=2000,
        declared="""\
declare void @llvm.aarch64.isb(i32)
declare i64 @llvm.aarch64.get.fpcr()
declare void @llvm.aarch64.set.fpcr(i64)""",
        current="  %old = call i64 @llvm.aarch64.get.fpcr()",
        set="  call void @llvm.aarch64.set.fpcr(i64 %mode)",
        plain=0,
        mask=-1,
    ),
    "riscv64": _Machine(
        futex=98,
        pause="call void @gcomp_pause()",
        spins=2000,
        # Code for Zihintpause, which is a fence that orders nothing on a processor without it.
        declared="""\
define internal void @gcomp_pause() "target-features"="+m,+a,+f,+d,+c,+zihintpause" {
  call void @llvm.riscv.pause()
  ret void
}
declare void @llvm.riscv.pause()
declare i32 @llvm.get.rounding()
declare void @llvm.set.rounding(i32)""",
        current="""\
  %word = call i32 @llvm.get.rounding()
  %old = sext i32 %word to i64""",
        set="""\
  %word = trunc i64 %mode to i32
  call void @llvm.set.rounding(i32 %word)""",
        plain=1,
        mask=-1,
    ),
}


def thread_pool(variant: Variant) -> str:
    """A module of LLVM IR: gcomp_parallel, gcomp_pool_start and _stop, gcomp_numbers_begin and _end."""
    machine = _MACHINES[variant.machine]
    return "\n".join(
        [_waiting(machine), _WORKING, _PARALLEL, _STARTING, _STOPPING, _numbers(machine), machine.declared, _ATTRIBUTES]
    )


_ATTRIBUTES = "attributes #0 = { nounwind }"


def _waiting(machine: _Machine) -> str:
    """Wait until a word changes, or until the system wakes the thread for nothing; and wake those who wait."""
    wait, wake = 128, 129  # of this process
    return f"""\
define internal void @gcomp_await(ptr %word, i32 %old, ptr %sleepers, ptr %syscall) #0 {{
  br label %spin
spin:
  %spun = phi i32 [ 0, %0 ], [ %next, %pause ]
  %now = load atomic i32, ptr %word acquire, align 4
  %same = icmp eq i32 %now, %old
  br i1 %same, label %pause, label %done
pause:
  {machine.pause}
  %next = add i32 %spun, 1
  %more = icmp ult i32 %next, {machine.spins}
  br i1 %more, label %spin, label %sleep
sleep:
  %before = atomicrmw add ptr %sleepers, i32 1 seq_cst
  %again = load atomic i32, ptr %word seq_cst, align 4
  %still = icmp eq i32 %again, %old
  br i1 %still, label %wait, label %awake
wait:
  %expected = zext i32 %old to i64
  %woken = call i64 (i64, ...) %syscall(i64 {machine.futex}, ptr %word, i64 {wait}, i64 %expected, ptr null)
  br label %awake
awake:
  %after = atomicrmw sub ptr %sleepers, i32 1 seq_cst
  br label %done
done:
  ret void
}}

define internal void @gcomp_wake(ptr %word, ptr %sleepers, ptr %syscall) #0 {{
  %asleep = load atomic i32, ptr %sleepers seq_cst, align 4
  %any = icmp ne i32 %asleep, 0
  br i1 %any, label %wake, label %done
wake:
  %woken = call i64 (i64, ...) %syscall(i64 {machine.futex}, ptr %word, i64 {wake}, i64 2147483647)
  br label %done
done:
  ret void
}}

define internal void @gcomp_announce(ptr %pool) #0 {{
  %sleepers = getelementptr i8, ptr %pool, i64 4
  %syscall.at = getelementptr i8, ptr %pool, i64 208
  %syscall = load ptr, ptr %syscall.at
  %before = atomicrmw add ptr %pool, i32 1 seq_cst
  call void @gcomp_wake(ptr %pool, ptr %sleepers, ptr %syscall)
  ret void
}}
"""


_WORKING = f"""\
define internal void @gcomp_part(ptr %kernel, ptr %args, i64 %programs, i64 %parts, i64 %part) #0 {{
  %before = mul i64 %part, %programs
  %begin = udiv i64 %before, %parts
  %until = add i64 %before, %programs
  %end = udiv i64 %until, %parts
  call void %kernel(ptr %args, i64 %begin, i64 %end)
  ret void
}}

; Take and run parts of one thread while there are untaken ones.
define internal void @gcomp_take(ptr %pool, i64 %owner) #0 {{
  %kernel.at = getelementptr i8, ptr %pool, i64 64
  %args.at = getelementptr i8, ptr %pool, i64 72
  %programs.at = getelementptr i8, ptr %pool, i64 80
  %threads.at = getelementptr i8, ptr %pool, i64 88
  %parts.at = getelementptr i8, ptr %pool, i64 96
  %left.at = getelementptr i8, ptr %pool, i64 128
  %waiting = getelementptr i8, ptr %pool, i64 132
  %syscall.at = getelementptr i8, ptr %pool, i64 208
  %owners = getelementptr i8, ptr %pool, i64 {HEADER}
  %offset = mul i64 %owner, {WORKER}
  %self = getelementptr i8, ptr %owners, i64 %offset
  %untaken.at = getelementptr i8, ptr %self, i64 24
  br label %look
look:
  %word = load atomic i64, ptr %untaken.at acquire, align 8
  %untaken = and i64 %word, 4294967295
  %none = icmp eq i64 %untaken, 0
  br i1 %none, label %done, label %try
try:
  %kernel = load atomic ptr, ptr %kernel.at monotonic, align 8
  %args = load atomic ptr, ptr %args.at monotonic, align 8
  %programs = load atomic i64, ptr %programs.at monotonic, align 8
  %threads = load atomic i64, ptr %threads.at monotonic, align 8
  %parts = load atomic i64, ptr %parts.at monotonic, align 8
  %fewer = sub i64 %word, 1
  %swapped = cmpxchg ptr %untaken.at, i64 %word, i64 %fewer acq_rel monotonic
  %taken = extractvalue {{ i64, i1 }} %swapped, 1
  br i1 %taken, label %run, label %look
run:
  %following = add i64 %owner, 1
  %last = call i64 @gcomp_first(i64 %following, i64 %parts, i64 %threads)
  %part = sub i64 %last, %untaken
  call void @gcomp_part(ptr %kernel, ptr %args, i64 %programs, i64 %parts, i64 %part)
  %left = atomicrmw sub ptr %left.at, i32 1 seq_cst
  %is.last = icmp eq i32 %left, 1
  br i1 %is.last, label %last.done, label %look
last.done:
  %syscall = load ptr, ptr %syscall.at
  call void @gcomp_wake(ptr %left.at, ptr %waiting, ptr %syscall)
  ret void
done:
  ret void
}}

; The first part of a thread.
define internal i64 @gcomp_first(i64 %number, i64 %parts, i64 %threads) #0 {{
  %share = mul i64 %number, %parts
  %first = udiv i64 %share, %threads
  ret i64 %first
}}

; Take a thread's own parts, and what the others have left.
define internal void @gcomp_work(ptr %pool, i64 %number, i64 %threads) #0 {{
  br label %next
next:
  %owner = phi i64 [ %number, %0 ], [ %following, %next ]
  %visited = phi i64 [ 0, %0 ], [ %count, %next ]
  call void @gcomp_take(ptr %pool, i64 %owner)
  %count = add i64 %visited, 1
  %after = add i64 %owner, 1
  %is.end = icmp eq i64 %after, %threads
  %following = select i1 %is.end, i64 0, i64 %after
  %more = icmp ult i64 %count, %threads
  br i1 %more, label %next, label %done
done:
  ret void
}}

define internal ptr @gcomp_worker(ptr %self) #0 {{
  %pool.at = getelementptr i8, ptr %self, i64 8
  %number.at = getelementptr i8, ptr %self, i64 16
  %pool = load ptr, ptr %pool.at
  %number = load i64, ptr %number.at
  %sleepers = getelementptr i8, ptr %pool, i64 4
  %kernel.at = getelementptr i8, ptr %pool, i64 64
  %threads.at = getelementptr i8, ptr %pool, i64 88
  %syscall.at = getelementptr i8, ptr %pool, i64 208
  %syscall = load ptr, ptr %syscall.at
  %old = call i64 @gcomp_numbers_begin()
  br label %await
await:
  %seen = phi i32 [ 0, %0 ], [ %now, %run ]
  call void @gcomp_await(ptr %pool, i32 %seen, ptr %sleepers, ptr %syscall)
  %now = load atomic i32, ptr %pool acquire, align 4
  %kernel = load atomic ptr, ptr %kernel.at monotonic, align 8
  %stop = icmp eq ptr %kernel, null
  br i1 %stop, label %end, label %run
run:
  %threads = load atomic i64, ptr %threads.at monotonic, align 8
  call void @gcomp_work(ptr %pool, i64 %number, i64 %threads)
  br label %await
end:
  ret ptr null
}}
"""

_PARALLEL = f"""\
define void @gcomp_parallel(ptr %pool, ptr %kernel, ptr %args, i64 %programs) #0 {{
  %none = icmp eq ptr %pool, null
  br i1 %none, label %alone, label %several
several:
  %threads.at = getelementptr i8, ptr %pool, i64 88
  %threads = load i64, ptr %threads.at
  %fewer = call i64 @llvm.umin.i64(i64 %threads, i64 %programs)
  %worth = icmp ugt i64 %fewer, 1
  br i1 %worth, label %free, label %alone
free:
  %busy = getelementptr i8, ptr %pool, i64 192
  %taken = cmpxchg ptr %busy, i32 0, i32 1 acquire monotonic
  %got = extractvalue {{ i32, i1 }} %taken, 1
  br i1 %got, label %fork, label %alone
alone:
  call void %kernel(ptr %args, i64 0, i64 %programs)
  ret void
fork:
  %kernel.at = getelementptr i8, ptr %pool, i64 64
  %args.at = getelementptr i8, ptr %pool, i64 72
  %programs.at = getelementptr i8, ptr %pool, i64 80
  %parts.at = getelementptr i8, ptr %pool, i64 96
  %left.at = getelementptr i8, ptr %pool, i64 128
  %waiting = getelementptr i8, ptr %pool, i64 132
  %syscall.at = getelementptr i8, ptr %pool, i64 208
  %owners = getelementptr i8, ptr %pool, i64 {HEADER}
  %syscall = load ptr, ptr %syscall.at
  %most = mul i64 %threads, {PARTS}
  %parts = call i64 @llvm.umin.i64(i64 %most, i64 %programs)
  store atomic ptr %kernel, ptr %kernel.at monotonic, align 8
  store atomic ptr %args, ptr %args.at monotonic, align 8
  store atomic i64 %programs, ptr %programs.at monotonic, align 8
  store atomic i64 %parts, ptr %parts.at monotonic, align 8
  %all = trunc i64 %parts to i32
  store atomic i32 %all, ptr %left.at monotonic, align 4
  %generation = load atomic i32, ptr %pool monotonic, align 4
  %new = add i32 %generation, 1
  %wide = zext i32 %new to i64
  %upper = shl i64 %wide, 32
  br label %give
give:
  %owner = phi i64 [ 0, %fork ], [ %following, %give ]
  %first = phi i64 [ 0, %fork ], [ %last, %give ]
  %following = add i64 %owner, 1
  %last = call i64 @gcomp_first(i64 %following, i64 %parts, i64 %threads)
  %untaken = sub i64 %last, %first
  %word = or i64 %upper, %untaken
  %offset = mul i64 %owner, {WORKER}
  %self = getelementptr i8, ptr %owners, i64 %offset
  %untaken.at = getelementptr i8, ptr %self, i64 24
  store atomic i64 %word, ptr %untaken.at release, align 8
  %more = icmp ult i64 %following, %threads
  br i1 %more, label %give, label %start
start:
  call void @gcomp_announce(ptr %pool)
  call void @gcomp_work(ptr %pool, i64 0, i64 %threads)
  br label %join
join:
  %left = load atomic i32, ptr %left.at acquire, align 4
  %done = icmp eq i32 %left, 0
  br i1 %done, label %free.again, label %await
await:
  call void @gcomp_await(ptr %left.at, i32 %left, ptr %waiting, ptr %syscall)
  br label %join
free.again:
  store atomic i32 0, ptr %busy release, align 4
  ret void
}}
declare i64 @llvm.umin.i64(i64, i64)
"""

_STARTING = f"""\
define i64 @gcomp_pool_start(ptr %pool, i64 %threads, ptr %create, ptr %join, ptr %syscall) #0 {{
  %header = call ptr @memset(ptr %pool, i32 0, i64 {HEADER})
  %threads.at = getelementptr i8, ptr %pool, i64 88
  %join.at = getelementptr i8, ptr %pool, i64 200
  %syscall.at = getelementptr i8, ptr %pool, i64 208
  store ptr %join, ptr %join.at
  store ptr %syscall, ptr %syscall.at
  %workers = getelementptr i8, ptr %pool, i64 {HEADER}
  br label %test
test:
  %number = phi i64 [ 1, %0 ], [ %next, %started ]
  %more = icmp slt i64 %number, %threads
  br i1 %more, label %start, label %done
start:
  %at = mul i64 %number, {WORKER}
  %self = getelementptr i8, ptr %workers, i64 %at
  %pool.at = getelementptr i8, ptr %self, i64 8
  %number.at = getelementptr i8, ptr %self, i64 16
  store ptr %pool, ptr %pool.at
  store i64 %number, ptr %number.at
  %failed = call i32 %create(ptr %self, ptr null, ptr @gcomp_worker, ptr %self)
  %is.started = icmp eq i32 %failed, 0
  br i1 %is.started, label %started, label %done
started:
  %next = add i64 %number, 1
  br label %test
done:
  store i64 %number, ptr %threads.at
  ret i64 %number
}}
declare ptr @memset(ptr, i32, i64)
"""

_STOPPING = f"""\
define void @gcomp_pool_stop(ptr %pool) #0 {{
  %kernel.at = getelementptr i8, ptr %pool, i64 64
  %threads.at = getelementptr i8, ptr %pool, i64 88
  %join.at = getelementptr i8, ptr %pool, i64 200
  %join = load ptr, ptr %join.at
  %threads = load i64, ptr %threads.at
  store atomic ptr null, ptr %kernel.at monotonic, align 8
  call void @gcomp_announce(ptr %pool)
  %workers = getelementptr i8, ptr %pool, i64 {HEADER}
  br label %test
test:
  %number = phi i64 [ 1, %0 ], [ %next, %stop ]
  %more = icmp slt i64 %number, %threads
  br i1 %more, label %stop, label %done
stop:
  %at = mul i64 %number, {WORKER}
  %self = getelementptr i8, ptr %workers, i64 %at
  %thread = load i64, ptr %self
  %joined = call i32 %join(i64 %thread, ptr null)
  %next = add i64 %number, 1
  br label %test
done:
  store i64 1, ptr %threads.at
  ret void
}}
"""


def _numbers(machine: _Machine) -> str:
    """Make the mode of arithmetic IEEE's and give back what it was, and set it as it was: for callers and workers."""
    return f"""\
define i64 @gcomp_numbers_begin() #0 {{
{machine.current}
  %bits = and i64 %old, {machine.mask}
  %same = icmp eq i64 %bits, {machine.plain}
  br i1 %same, label %done, label %set
set:
  call void @gcomp_mode(i64 {machine.plain})
  br label %done
done:
  ret i64 %old
}}

define void @gcomp_numbers_end(i64 %old) #0 {{
  %bits = and i64 %old, {machine.mask}
  %same = icmp eq i64 %bits, {machine.plain}
  br i1 %same, label %done, label %set
set:
  call void @gcomp_mode(i64 %old)
  br label %done
done:
  ret void
}}

define internal void @gcomp_mode(i64 %mode) #0 {{
{machine.set}
  ret void
}}
"""


__all__ = ["HEADER", "WORKER", "thread_pool"]
