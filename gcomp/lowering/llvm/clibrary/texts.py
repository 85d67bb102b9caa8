"""The C texts of a library: its header, a program that runs it on files, and a makefile."""

from __future__ import annotations

from dataclasses import dataclass
from string import Template

from gcomp.lowering.llvm.clibrary.interface import ALIGNMENT, UNALIGNED, Interface
from gcomp.lowering.llvm.threads import HEADER, WORKER
from gcomp.runtime.manifest import InputSpec, OutputSpec
from gcomp.runtime.signature import Signature


@dataclass(frozen=True)
class Described:
    """What the texts say of a library: its name, processor, signature, interface and the bytes of its weights."""

    name: str
    variant: str
    signature: Signature
    interface: Interface
    weights: int


def header(library: Described) -> str:
    """The header."""
    name, big = library.name, library.name.upper()
    ranges = library.interface.ranges
    sizes = [f" *   {n}  {_plain(symbol)}, {known}" for n, (symbol, known) in enumerate(ranges)]
    first = len(ranges) + 1
    rules = [f" *   {first + n}  {_plain(c.where)}: {_plain(f'{c.kind} {c.lhs}, {c.rhs}')}"
             for n, c in enumerate(library.interface.constraints)]  # fmt: skip
    described = [
        f"/* {name}, a model compiled by gcomp for {library.variant}.",
        " *",
        " * Nothing here allocates memory, keeps a state or needs a library. All memory is the caller's; calls with",
        " * arenas and outputs of their own may run at the same time. Arrays are in C's order; i1 is one byte, 0 or 1.",
        " *",
        " * Inputs, by number:",
        *_inputs(library),
        " * Outputs, by number:",
        *(_row(number, spec) for number, spec in enumerate(library.signature.outputs)),
        *([" * Sizes, by number, which the dimensions above are made of:", *sizes] if sizes else []),
        *([" * What must hold of them, by what the check gives:", *rules] if rules else []),
        " */",
    ]
    return "\n".join(described) + _HEADER.substitute(
        name=name, big=big, inputs=len(library.signature.inputs), outputs=len(library.signature.outputs),
        sizes=len(ranges), weights=library.weights, alignment=ALIGNMENT, header=HEADER, worker=WORKER,
        unaligned=UNALIGNED,
    )  # fmt: skip


def _inputs(library: Described) -> list[str]:
    shared = dict(library.interface.shared)
    rows: list[str] = []
    for number, spec in enumerate(library.signature.inputs):
        kept = "" if spec.state is None else f"; output {spec.state} of the call before"
        may = f"; output {shared[number]} may lie in its memory" if number in shared else ""
        rows.append(_row(number, spec) + kept + may)
    return rows or [" *   none"]


def _row(number: int, spec: InputSpec | OutputSpec) -> str:
    return f" *   {number}  {_plain(spec.name)}: {spec.dtype}[{', '.join(spec.dims)}]"


def _plain(text: str) -> str:
    """A name of the model's, as part of a comment."""
    return "".join(c if c.isprintable() else "?" for c in text).replace("*/", "* /").replace("/*", "/ *")[:200]


_HEADER = Template("""
#ifndef GCOMP_${big}_H
#define GCOMP_${big}_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ${big}_INPUTS ${inputs}
#define ${big}_OUTPUTS ${outputs}
#define ${big}_SIZES ${sizes}
#define ${big}_WEIGHTS_BYTES ${weights}

/* What the arena, the pool and the weights begin at a multiple of. Inputs and outputs begin where C's types may. */
#define ${big}_ALIGNMENT ${alignment}

/* 0 where the sizes are right; n + 1 for the size n out of its range; more for a rule above that does not hold. */
int64_t ${name}_check(const int64_t *sizes);

/* Bytes of memory, for sizes that are right: of the arena, an input, an output. -1: there is none of the number. */
int64_t ${name}_arena_bytes(const int64_t *sizes);
int64_t ${name}_input_bytes(int64_t index, const int64_t *sizes);
int64_t ${name}_output_bytes(int64_t index, const int64_t *sizes);

/* Computes the outputs. `sizes` may be NULL where there are none, `weights` are the bytes of ${name}.weights, `pool` is
 * one that was started, or NULL for this thread alone. No output lies in memory of an
 * input but those above that may. 0: done; ${unaligned}: the arena is not aligned; else what ${name}_check gives. */
int64_t ${name}_run(void *arena, void *pool, const void *weights, const void *const *inputs, void *const *outputs,
                   const int64_t *sizes);

/* A pool of threads, the caller's among them, in memory of so many bytes: for one call at a time, and of the process
 * that started it. Threads are started and ended by the functions of the system's C library that are given:
 * pthread_create, pthread_join and syscall (Linux). Block signals around the start: threads inherit that. Results do
 * not depend on threads. Gives how many threads there are. */
#define ${big}_POOL_BYTES(threads) (${header} + ${worker} * (size_t)(threads))
typedef void (*${name}_function)(void);
int64_t ${name}_pool_start(void *pool, int64_t threads, ${name}_function create, ${name}_function join,
                          ${name}_function syscall);
void ${name}_pool_stop(void *pool);

#ifdef __cplusplus
}
#endif
#endif
""")


def example(library: Described) -> str:
    """A program that runs the library once, on files."""
    return _EXAMPLE.substitute(name=library.name, big=library.name.upper())


_EXAMPLE = Template("""\
/* Runs the model once: example [-t THREADS] ${name}.weights SIZE... INPUT...
 * Inputs are files of the bytes of their arrays; outputs are written to output0.bin and so on. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "${name}.h"

static void fail(const char *what, const char *where) {
  fprintf(stderr, "%s: %s\\n", what, where);
  exit(1);
}

static void *memory(int64_t bytes) {
  size_t size = ((size_t)bytes / ${big}_ALIGNMENT + 1) * ${big}_ALIGNMENT;
  void *found = bytes < 0 ? NULL : aligned_alloc(${big}_ALIGNMENT, size);
  if (!found) fail("there is not enough memory", "model");
  return found;
}

static void *contents(const char *path, int64_t bytes) {
  void *found = memory(bytes);
  FILE *file = fopen(path, "rb");
  if (!file) fail("cannot be read", path);
  if (fread(found, 1, (size_t)bytes, file) != (size_t)bytes || fgetc(file) != EOF) fail("has another size", path);
  fclose(file);
  return found;
}

static void *started(int64_t threads) {
  void *pool = memory(${big}_POOL_BYTES(threads));
  sigset_t all, old;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &old);
  ${name}_pool_start(pool, threads, (${name}_function)pthread_create, (${name}_function)pthread_join,
                  (${name}_function)syscall);
  pthread_sigmask(SIG_SETMASK, &old, NULL);
  return pool;
}

int main(int argc, char **argv) {
  int64_t threads = 1;
  if (argc > 2 && !strcmp(argv[1], "-t")) {
    threads = atoll(argv[2]);
    argv += 2, argc -= 2;
  }
  if (argc != 2 + ${big}_SIZES + ${big}_INPUTS || threads < 1 || threads > 1024)
    fail("usage", "example [-t THREADS] ${name}.weights SIZE... INPUT...");
  void *weights = contents(argv[1], ${big}_WEIGHTS_BYTES);
  int64_t sizes[${big}_SIZES + 1];
  for (int n = 0; n < ${big}_SIZES; n++) sizes[n] = atoll(argv[2 + n]);
  if (${name}_check(sizes)) fail("a size is not right", "see ${name}_check");
  const void *inputs[${big}_INPUTS + 1];
  for (int n = 0; n < ${big}_INPUTS; n++)
    inputs[n] = contents(argv[2 + ${big}_SIZES + n], ${name}_input_bytes(n, sizes));
  void *outputs[${big}_OUTPUTS + 1];
  for (int n = 0; n < ${big}_OUTPUTS; n++) outputs[n] = memory(${name}_output_bytes(n, sizes));
  void *pool = threads > 1 ? started(threads) : NULL;
  int64_t wrong = ${name}_run(memory(${name}_arena_bytes(sizes)), pool, weights, inputs, outputs, sizes);
  if (pool) ${name}_pool_stop(pool);
  if (wrong) fail("the call failed", "see ${name}_run");
  for (int n = 0; n < ${big}_OUTPUTS; n++) {
    char path[32];
    snprintf(path, sizeof path, "output%d.bin", n);
    FILE *file = fopen(path, "wb");
    size_t bytes = (size_t)${name}_output_bytes(n, sizes);
    if (!file || fwrite(outputs[n], 1, bytes, file) != bytes || fclose(file)) fail("cannot be written", path);
    printf("%s: %zu bytes\\n", path, bytes);
  }
  return 0;
}
""")


def makefile(library: Described) -> str:
    """What builds the program."""
    name = library.name
    return f"""\
# make; for another machine than this one, as in make CROSS=aarch64-linux-gnu-
CROSS =
CC = $(CROSS)gcc
CFLAGS = -std=c11 -O2 -Wall -Wextra

example: example.c {name}.h lib{name}.a
\t$(CC) $(CFLAGS) $(LDFLAGS) -o $@ example.c -L. -l{name} -pthread

clean:
\trm -f example

.PHONY: clean
"""


__all__ = ["Described", "example", "header", "makefile"]
