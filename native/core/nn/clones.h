#pragma once

/// Before a function with a plain loop: compiled once per instruction set, and the loader picks the best.
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#define CARILLON_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define CARILLON_CLONES
#endif
