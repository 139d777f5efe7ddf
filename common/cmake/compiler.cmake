# Flags of all targets, and the function that makes a library from a folder.
include(CheckCCompilerFlag)

add_library(psring_sys INTERFACE)
target_include_directories(psring_sys INTERFACE ${CMAKE_SOURCE_DIR})
target_compile_definitions(psring_sys INTERFACE _GNU_SOURCE PSRING_VERSION="${PROJECT_VERSION}")
target_link_libraries(psring_sys INTERFACE Threads::Threads m)
# No contraction into fused multiply-add: separate ranks and one process that simulates them must agree to the bit.
target_compile_options(psring_sys INTERFACE -ffp-contract=off -fno-omit-frame-pointer)

set(PSRING_WARNINGS
    -Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
    -Wcast-qual -Wwrite-strings -Wvla -Wformat=2 -Wundef -Wconversion -Wno-sign-conversion
    -Wdouble-promotion -Wimplicit-fallthrough)
if(PSRING_WERROR)
  list(APPEND PSRING_WARNINGS -Werror)
endif()

if(PSRING_SANITIZE)
  list(JOIN PSRING_SANITIZE "," sanitizers)
  target_compile_options(psring_sys INTERFACE -fsanitize=${sanitizers} -fno-sanitize-recover=all)
  target_link_options(psring_sys INTERFACE -fsanitize=${sanitizers})
endif()

# Compile kernels for several vector widths; the loader picks one (common/device/kernel.h). Not under sanitizers: their
# run-time is not ready at that time.
include(CheckCSourceCompiles)
if(NOT PSRING_SANITIZE)
  check_c_source_compiles("
    __attribute__((target_clones(\"arch=x86-64-v4\", \"arch=x86-64-v3\", \"default\")))
    int f(int x) { return x + 1; }
    int main(void) { return f(-1); }" PSRING_COMPILER_HAS_TARGET_CLONES)
  if(PSRING_COMPILER_HAS_TARGET_CLONES)
    target_compile_definitions(psring_sys INTERFACE PSRING_TARGET_CLONES)
  endif()
endif()

# Convert fp16 with the CPU's instructions if the CPU has them at run time (common/comm/reduce.c).
check_c_source_compiles("
  #include <immintrin.h>
  __attribute__((target(\"avx2,f16c\"))) static float f(short x)
  {
      return _mm256_cvtss_f32(_mm256_cvtph_ps(_mm_set1_epi16(x)));
  }
  int main(void) { return __builtin_cpu_supports(\"avx2\") && __builtin_cpu_supports(\"f16c\") && f(0) > 0; }"
  PSRING_COMPILER_HAS_F16C)
if(PSRING_COMPILER_HAS_F16C)
  target_compile_definitions(psring_sys INTERFACE PSRING_F16C)
endif()

# psring_library(NAME DIR folder [RECURSE] [EXCLUDE file...] LINK targets...): libpsring_NAME.a from folder/*.c. RECURSE
# adds its subfolders.
function(psring_library name)
  cmake_parse_arguments(arg "RECURSE" "DIR" "EXCLUDE;LINK" ${ARGN})
  set(glob GLOB)
  if(arg_RECURSE)
    set(glob GLOB_RECURSE)
  endif()
  file(${glob} sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${arg_DIR}/*.c)
  foreach(file IN LISTS arg_EXCLUDE)
    list(REMOVE_ITEM sources ${CMAKE_SOURCE_DIR}/${arg_DIR}/${file})
  endforeach()
  if(NOT sources)
    add_library(psring_${name} INTERFACE)
    target_link_libraries(psring_${name} INTERFACE ${arg_LINK})
    return()
  endif()
  add_library(psring_${name} STATIC ${sources})
  target_link_libraries(psring_${name} PUBLIC ${arg_LINK})
  target_compile_options(psring_${name} PRIVATE ${PSRING_WARNINGS})
endfunction()
