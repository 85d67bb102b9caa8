/* Maps an image and tries its functions: the pool of threads, the memory functions, code with constants and tables.
   Arguments: the image, and the offsets of what is called, in the order of `enum`. Prints what is wrong. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { START = 2, STOP, REPEAT, COPY, MOVE, FILL, CHOSEN, ENTRY, COUNT };

static unsigned char *code;

static void *at(char **argv, int index) { return code + strtoull(argv[index], 0, 10); }

static int wrong;

static void expect(int holds, const char *what) {
  if (!holds) {
    wrong = 1;
    printf("wrong: %s\n", what);
  }
}

static void try_pools(char **argv) {
  int64_t (*start)(void *, int64_t, void *, void *, void *) = at(argv, START);
  void (*stop)(void *) = at(argv, STOP);
  void (*repeat)(void *, void *, int64_t, int64_t) = at(argv, REPEAT);
  for (int64_t threads = 1; threads <= 4; threads++) {
    static unsigned char pool[1024] __attribute__((aligned(64)));
    int64_t cells[17] = {0};
    void *args[1] = {cells};
    expect(start(pool, threads, pthread_create, pthread_join, syscall) == threads, "threads that were started");
    for (int round = 0; round < 5; round++) {
      repeat(pool, args, 17, 100);
      usleep(2000);
    }
    stop(pool);
    for (int i = 0; i < 17; i++) expect(cells[i] == 500, "each program runs once a call");
  }
}

static void try_memory(char **argv) {
  void *(*copy)(void *, const void *, size_t) = at(argv, COPY), *(*move)(void *, const void *, size_t) = at(argv, MOVE);
  void *(*fill)(void *, int, size_t) = at(argv, FILL);
  unsigned char data[400], want[400];
  for (int size = 0; size < 140; size++)
    for (int offset = 0; offset < 150; offset += 7) {
      for (int i = 0; i < 400; i++) data[i] = want[i] = (unsigned char)(i * 31 + size);
      move(data + offset, data + 64, size), memmove(want + offset, want + 64, size);
      fill(data + 380 - size, offset, size), memset(want + 380 - size, offset, size);
      expect(copy(data + offset, data + 290 + offset % 8, size / 2) == data + offset, "the result of memcpy");
      memmove(want + offset, want + 290 + offset % 8, size / 2);
      expect(!memcmp(data, want, 400), "memory functions");
    }
}

int main(int argc, char **argv) {
  FILE *file = fopen(argv[1], "rb");
  static unsigned char image[1 << 20];
  size_t size = fread(image, 1, sizeof image, file);
  code = mmap(0, sizeof image, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code, image, size);
  __builtin___clear_cache((char *)code, (char *)code + size);
  if (argc != COUNT || mprotect(code, sizeof image, PROT_READ | PROT_EXEC)) return 2;
  double (*chosen)(int64_t) = at(argv, CHOSEN), (*entry)(int64_t) = at(argv, ENTRY);
  static const double choices[] = {0.5, 5.0, 2.25, 1100.0, 4.75, 5.125, -1.0};
  for (int i = 0; i < 7; i++) expect(chosen(i) == choices[i], "a table of jumps, calls and constants");
  for (int i = 0; i < 4; i++) expect(entry(i) == 1 << i, "constants");
  try_memory(argv);
  try_pools(argv);
  if (!wrong) printf("right\n");
  return wrong;
}
