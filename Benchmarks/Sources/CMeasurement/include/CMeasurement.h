#pragma once

#include <stdint.h>

/// What the process has asked of the heap so far.
struct measurement_heap_use {
    /// Calls that returned new memory: malloc, calloc, aligned allocations, and realloc, which may move a block.
    uint64_t count;
    /// The bytes that they asked for.
    uint64_t bytes;
};

struct measurement_heap_use measurement_current_heap_use(void);

/// Nanoseconds of processor time that the calling thread has had.
uint64_t measurement_thread_nanoseconds(void);

/// Opens a counter of the instructions that the calling thread executes in user mode. -1 when the machine, or its
/// settings, do not allow it.
int measurement_open_instruction_counter(void);

/// The instructions counted so far.
uint64_t measurement_instructions(int counter);

/// Makes the compiler believe that `value` is used, and that any memory may have changed.
static inline void measurement_consume(uint64_t value) {
    __asm__ volatile("" : : "r"(value) : "memory");
}
