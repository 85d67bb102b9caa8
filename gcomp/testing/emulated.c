/* Runs machine code that comes on the input, on memory that comes with it, and answers with that memory.

   A request: the sizes of code, how many pieces of memory and calls; the code; each piece's size and bytes; each call:
   where its function begins, how many programs it runs, how many arguments it has, and of each argument whether it is
   the number of a piece of memory, and the number or the value. All numbers have 64 bits. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef void kernel(const int64_t *arguments, int64_t begin, int64_t end);

static void get(void *into, size_t size) {
    if (size && fread(into, 1, size, stdin) != size) exit(2);
}

static uint64_t number(void) {
    uint64_t value;
    get(&value, sizeof value);
    return value;
}

int main(void) {
    uint64_t size;
    while (fread(&size, 1, sizeof size, stdin) == sizeof size) {
        uint64_t pieces = number(), calls = number();
        char *code = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (code == MAP_FAILED) return 3;
        get(code, size);
        if (mprotect(code, size, PROT_READ | PROT_EXEC)) return 4;
        __builtin___clear_cache(code, code + size);
        char **memory = malloc((pieces + 1) * sizeof *memory);
        uint64_t *sizes = malloc((pieces + 1) * sizeof *sizes);
        for (uint64_t i = 0; i < pieces; i++) {
            sizes[i] = number();
            memory[i] = aligned_alloc(64, (sizes[i] / 64 + 1) * 64);
            if (memory[i] == NULL) return 3;
            get(memory[i], sizes[i]);
        }
        for (uint64_t i = 0; i < calls; i++) {
            uint64_t entry = number(), programs = number(), count = number();
            int64_t *arguments = malloc((count + 1) * sizeof *arguments);
            for (uint64_t k = 0; k < count; k++) {
                uint64_t is_memory = number(), value = number();
                arguments[k] = is_memory ? (int64_t)(uintptr_t)memory[value] : (int64_t)value;
            }
            ((kernel *)(uintptr_t)(code + entry))(arguments, 0, (int64_t)programs);
            free(arguments);
        }
        for (uint64_t i = 0; i < pieces; i++) {
            if (fwrite(memory[i], 1, sizes[i], stdout) != sizes[i]) return 5;
            free(memory[i]);
        }
        fflush(stdout);
        free(memory);
        free(sizes);
        munmap(code, size);
    }
    return 0;
}
