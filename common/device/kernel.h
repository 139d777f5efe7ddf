/*
 * KERNEL marks a function whose inner loops should use the widest vectors of the machine. The
 * compiler emits it several times and the loader picks one version. All versions give the same
 * bits, because nothing is reassociated or contracted (no fast-math, -ffp-contract=off). CMake
 * defines PSRING_TARGET_CLONES if the compiler and the loader support this. Sanitizers exclude it:
 * their run-time is not ready when the loader picks.
 */
#ifndef PSRING_COMMON_DEVICE_KERNEL_H
#define PSRING_COMMON_DEVICE_KERNEL_H

#ifdef PSRING_TARGET_CLONES
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif

/* For functions that a KERNEL calls. Inlined, they use the vectors of their caller. */
#define KERNEL_PART static inline __attribute__((always_inline))

#endif
