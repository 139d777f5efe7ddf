# The packages that psring needs. A missing one ends in one message that says what to install.
set(PSRING_INSTALL_HINT "run experiments/setup.sh, which installs it")

find_package(PkgConfig)
if(NOT PkgConfig_FOUND)
  message(FATAL_ERROR "pkg-config is missing: ${PSRING_INSTALL_HINT}.")
endif()

function(require_pkg prefix module package)
  pkg_check_modules(${prefix} QUIET IMPORTED_TARGET GLOBAL ${module})
  if(NOT ${prefix}_FOUND)
    message(FATAL_ERROR "${module} (Debian: ${package}) is missing: ${PSRING_INSTALL_HINT}.")
  endif()
endfunction()

# For libpsring.
require_pkg(ZMQ libzmq libzmq3-dev)
# Drop its other flags. They name headers of its dependencies, in another order at a second configuration, which would
# recompile everything.
set_target_properties(PkgConfig::ZMQ PROPERTIES INTERFACE_COMPILE_OPTIONS "" INTERFACE_INCLUDE_DIRECTORIES "${ZMQ_INCLUDE_DIRS}")
find_package(OpenSSL COMPONENTS Crypto SSL)
if(NOT OpenSSL_FOUND)
  message(FATAL_ERROR "OpenSSL (Debian: libssl-dev) is missing: ${PSRING_INSTALL_HINT}.")
endif()
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
if(PSRING_MPI OR PSRING_LIBRARY_MPI)
  find_package(MPI COMPONENTS C)
  if(NOT MPI_C_FOUND)
    message(FATAL_ERROR "MPI (Debian: libopenmpi-dev and openmpi-bin) is missing: ${PSRING_INSTALL_HINT}. "
                        "Or omit it: -DPSRING_MPI=OFF -DPSRING_LIBRARY_MPI=OFF.")
  endif()
endif()
set(PSRING_HAVE_CUDA OFF)
set(PSRING_TOOLKIT_CUDA "")
if(NOT PSRING_PROGRAM)
  return()
endif()

require_pkg(CJSON libcjson libcjson-dev)
if(PSRING_TESTS AND PSRING_SANITIZE MATCHES "thread")
  # Criterion does not start under ThreadSanitizer. tests/tsan replaces the parts of it that the tests use.
  add_library(criterion_standin STATIC tests/tsan/criterion.c)
  target_include_directories(criterion_standin SYSTEM PUBLIC ${CMAKE_SOURCE_DIR}/tests/tsan)
  target_link_libraries(criterion_standin PUBLIC psring_sys)
  add_library(PkgConfig::CRITERION ALIAS criterion_standin)
elseif(PSRING_TESTS)
  require_pkg(CRITERION criterion libcriterion-dev)
endif()

find_package(ZLIB)
if(PSRING_TESTS AND NOT PSRING_MPI)
  message(FATAL_ERROR "The tests start ranks with MPI: leave out -DPSRING_MPI=OFF, or add -DPSRING_TESTS=OFF.")
endif()
if(NOT ZLIB_FOUND)
  message(FATAL_ERROR "ZLIB (Debian: zlib1g-dev) is missing: ${PSRING_INSTALL_HINT}.")
endif()

# CBLAS: prefer OpenBLAS, because its thread count can be set. psring uses threads over images instead.
pkg_search_module(CBLAS QUIET IMPORTED_TARGET GLOBAL openblas blas-openblas cblas)
if(NOT CBLAS_FOUND)
  message(FATAL_ERROR "A CBLAS (Debian: libopenblas-dev) is missing: ${PSRING_INSTALL_HINT}.")
endif()
add_library(CBLAS::CBLAS ALIAS PkgConfig::CBLAS)
include(CheckSymbolExists)
set(CMAKE_REQUIRED_LIBRARIES PkgConfig::CBLAS)
check_symbol_exists(openblas_set_num_threads cblas.h PSRING_CBLAS_SETS_THREADS)
unset(CMAKE_REQUIRED_LIBRARIES)

# CUDA is optional: without it `--device cuda` reports why. Its run-time does not work well with sanitizers, so AUTO
# omits it there. NCCL: see nccl.cmake.
set(PSRING_CUDA AUTO CACHE STRING "CUDA device: AUTO (if the toolkit is found), ON (required) or OFF")
set_property(CACHE PSRING_CUDA PROPERTY STRINGS AUTO ON OFF)
if(PSRING_CUDA STREQUAL "AUTO" AND PSRING_SANITIZE)
  message(STATUS "CUDA: omitted from builds with sanitizers")
elseif(PSRING_CUDA)
  include(common/cmake/cuda.cmake)
endif()
