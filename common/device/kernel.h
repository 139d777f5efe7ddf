/*
 * KERNEL marks a function whose inner loops should use the widest vectors of the machine it runs
 * on: the compiler emits it several times and the loader picks one. The result is the same to the
 * bit whichever is picked, because nothing is reassociated or contracted (no fast-math,
 * -ffp-contract=off). CMake defines PSRING_TARGET_CLONES where the compiler and the loader can
 * (not under sanitizers, whose run-time is not ready when the loader picks).
 */
#ifndef PSRING_COMMON_DEVICE_KERNEL_H
#define PSRING_COMMON_DEVICE_KERNEL_H

#ifdef PSRING_TARGET_CLONES
#define KERNEL __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define KERNEL
#endif

/* For what a KERNEL calls: it has to be part of the caller to be compiled for the same vectors. */
#define KERNEL_PART static inline __attribute__((always_inline))

#endif
