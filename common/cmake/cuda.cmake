# Sets PSRING_HAVE_CUDA where CUDA code can be built: a toolkit with cuBLAS's header and a compiler
# that works. Everything but the kernels (*.cu) is C and needs only the toolkit's headers.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()

# Code for the GPU that is here; where there is none, machine code for the data-centre GPUs of
# Ampere (which runs on all of that generation and the next) and Hopper, and PTX, which the driver
# compiles for all others from Turing on.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE smi_result OUTPUT_VARIABLE smi_output ERROR_QUIET)
  if(smi_result EQUAL 0 AND smi_output MATCHES "GPU")
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES "75-virtual;80-real;90")
  endif()
endif()

if(CUDAToolkit_FOUND AND EXISTS ${CUDAToolkit_INCLUDE_DIRS}/cublas_v2.h)
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(CUDAToolkit_FOUND AND CMAKE_CUDA_COMPILER AND EXISTS ${CUDAToolkit_INCLUDE_DIRS}/cublas_v2.h)
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  set(PSRING_HAVE_CUDA ON)
  set(PSRING_TOOLKIT_CUDA "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
elseif(PSRING_CUDA STREQUAL "ON")
  message(FATAL_ERROR "PSRING_CUDA=ON, and no CUDA toolkit with nvcc and cuBLAS was found: install it "
                      "(Debian: nvidia-cuda-toolkit; or NVIDIA's own) and put nvcc on the PATH, or name "
                      "its folder with -DCUDAToolkit_ROOT=DIR.")
endif()

# psring_cuda(target): `target` (the device library) gets the kernels and CUDA's run-time, linked
# statically: nothing of CUDA is loaded by a process that does not use it.
function(psring_cuda target)
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/device/*.cu)
  add_library(psring_kernels STATIC ${kernels})
  target_include_directories(psring_kernels PRIVATE ${CMAKE_SOURCE_DIR})
  # No contraction into fused multiply-add, as on the CPU: an elementwise operation gives the same
  # bits on both.
  target_compile_options(psring_kernels PRIVATE -fmad=false $<$<BOOL:${PSRING_WERROR}>:-Werror=all-warnings>)
  target_link_libraries(${target} PUBLIC psring_kernels CUDA::cudart_static)
  psring_cuda_facts(${target})
endfunction()

# What the C files need to know.
function(psring_cuda_facts target)
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  string(REPLACE ";" ", " architectures "${CMAKE_CUDA_ARCHITECTURES}")
  set(cublas libcublas.so.${CUDAToolkit_VERSION_MAJOR})
  target_compile_definitions(${target} PRIVATE
      PSRING_TOOLKIT_CUDA="${PSRING_TOOLKIT_CUDA}"
      PSRING_CUDA_ARCHITECTURES="${architectures}"
      PSRING_CUBLAS_NAME="${cublas}"
      PSRING_CUBLAS_PATH="${CUDAToolkit_LIBRARY_DIR}/${cublas}")
endfunction()

# Ranges for profilers, in `target`: NVTX is headers only, and opens a profiler's library if there is one.
function(psring_nvtx target)
  if(EXISTS ${CUDAToolkit_INCLUDE_DIRS}/nvtx3/nvToolsExt.h)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_definitions(${target} PRIVATE PSRING_NVTX)
    target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})
    set(PSRING_HAVE_NVTX ON PARENT_SCOPE)
  endif()
endfunction()
