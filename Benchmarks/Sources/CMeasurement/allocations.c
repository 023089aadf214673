// Definitions in the program itself come before those of the C library, for every library that is loaded: whatever OpenSSL
// or the Swift runtime allocates goes through here as well. The work is left to the C library's own functions.

#include "CMeasurement.h"

#include <errno.h>
#include <stdatomic.h>
#include <stddef.h>

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *block, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void *__libc_valloc(size_t size);
void *__libc_pvalloc(size_t size);
void __libc_free(void *block);

static _Atomic uint64_t allocation_count;
static _Atomic uint64_t allocation_bytes;

static void note(size_t size) {
    atomic_fetch_add_explicit(&allocation_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&allocation_bytes, size, memory_order_relaxed);
}

struct measurement_heap_use measurement_current_heap_use(void) {
    return (struct measurement_heap_use){
        .count = atomic_load_explicit(&allocation_count, memory_order_relaxed),
        .bytes = atomic_load_explicit(&allocation_bytes, memory_order_relaxed),
    };
}

void *malloc(size_t size) {
    note(size);
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    note(count * size);
    return __libc_calloc(count, size);
}

void *realloc(void *block, size_t size) {
    note(size);
    return __libc_realloc(block, size);
}

void free(void *block) { __libc_free(block); }

void *memalign(size_t alignment, size_t size) {
    note(size);
    return __libc_memalign(alignment, size);
}

void *aligned_alloc(size_t alignment, size_t size) { return memalign(alignment, size); }

int posix_memalign(void **block, size_t alignment, size_t size) {
    if (alignment % sizeof(void *) != 0 || alignment == 0 || (alignment & (alignment - 1)) != 0) {
        return EINVAL;
    }
    void *memory = memalign(alignment, size);
    if (memory == NULL) {
        return ENOMEM;
    }
    *block = memory;
    return 0;
}

void *valloc(size_t size) {
    note(size);
    return __libc_valloc(size);
}

void *pvalloc(size_t size) {
    note(size);
    return __libc_pvalloc(size);
}
