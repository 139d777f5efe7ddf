# Sets PSRING_HAVE_CUDA if CUDA code can be built: a toolkit with cuBLAS's header, and a working compiler. All code
# except the kernels (*.cu) is C and needs only the toolkit's headers.
find_package(CUDAToolkit QUIET)
if(CUDAToolkit_FOUND AND NOT CMAKE_CUDA_COMPILER AND CUDAToolkit_NVCC_EXECUTABLE)
  set(CMAKE_CUDA_COMPILER ${CUDAToolkit_NVCC_EXECUTABLE})
endif()

# Compile for the local GPU. Without one, compile machine code for the data-centre GPUs of Ampere (which also runs on
# the rest of that generation and the next) and Hopper. Add PTX, which the driver compiles for all other GPUs from
# Turing on.
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  execute_process(COMMAND nvidia-smi -L RESULT_VARIABLE smi_result OUTPUT_VARIABLE smi_output ERROR_QUIET)
  if(smi_result EQUAL 0 AND smi_output MATCHES "GPU")
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES "75-virtual;80-real;90")
  endif()
endif()

# psring_wheels(variable): the folders of NVIDIA's Python packages, which PyTorch installs. nvidia/cu13 has all
# libraries of CUDA from 13 on; nvidia/cublas and nvidia/nccl have one library each.
function(psring_wheels variable)
  set(folders "")
  find_program(PSRING_PYTHON NAMES python3)
  if(PSRING_PYTHON)
    execute_process(
      COMMAND ${PSRING_PYTHON} -c "import nvidia; print(*nvidia.__path__, sep=';', end='')"
      OUTPUT_VARIABLE parents ERROR_QUIET)
    foreach(parent IN LISTS parents)
      foreach(package IN ITEMS cu${CUDAToolkit_VERSION_MAJOR} cublas nccl)
        if(IS_DIRECTORY ${parent}/${package}/lib)
          list(APPEND folders ${parent}/${package})
        endif()
      endforeach()
    endforeach()
  endif()
  set(${variable} "${folders}" PARENT_SCOPE)
endfunction()

# Search for headers and libraries: CMake reports one folder of headers up to 3.30 and several from 3.31 on. Its folder
# of libraries need not contain all libraries.
if(CUDAToolkit_FOUND)
  get_filename_component(cuda_root ${CUDAToolkit_BIN_DIR} DIRECTORY)
  set(PSRING_CUDA_INCLUDE_HINTS ${CUDAToolkit_INCLUDE_DIRS} ${cuda_root}/include)
  set(PSRING_CUDA_LIBRARY_HINTS ${CUDAToolkit_LIBRARY_DIR} ${cuda_root}/lib64 ${cuda_root}/lib
                                ${cuda_root}/targets/${CMAKE_SYSTEM_PROCESSOR}-linux/lib)
  psring_wheels(cuda_wheels)
  foreach(wheel IN LISTS cuda_wheels)
    list(APPEND PSRING_CUDA_INCLUDE_HINTS ${wheel}/include)
    list(APPEND PSRING_CUDA_LIBRARY_HINTS ${wheel}/lib)
  endforeach()
  find_file(PSRING_CUBLAS_HEADER cublas_v2.h HINTS ${PSRING_CUDA_INCLUDE_HINTS})
endif()
if(PSRING_CUBLAS_HEADER)
  include(CheckLanguage)
  check_language(CUDA)
endif()
if(PSRING_CUBLAS_HEADER AND CMAKE_CUDA_COMPILER)
  set(CMAKE_CUDA_STANDARD 17)
  enable_language(CUDA)
  set(PSRING_HAVE_CUDA ON)
  set(PSRING_TOOLKIT_CUDA "${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
elseif(PSRING_CUDA STREQUAL "ON")
  message(FATAL_ERROR "PSRING_CUDA=ON, but no CUDA toolkit with nvcc and cuBLAS was found: install it "
                      "(Debian: nvidia-cuda-toolkit; or NVIDIA's own) and put nvcc on the PATH, or name "
                      "its folder with -DCUDAToolkit_ROOT=DIR.")
endif()

# psring_cuda(target): adds the kernels and CUDA's run-time to `target` (the device library). They are linked
# statically, so a process that does not use CUDA loads nothing of it.
function(psring_cuda target)
  file(GLOB kernels CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/device/cuda/kernels/*.cu)
  add_library(psring_kernels STATIC ${kernels})
  target_include_directories(psring_kernels PRIVATE ${CMAKE_SOURCE_DIR})
  # No contraction into fused multiply-add, as on the CPU: an elementwise operation gives the same bits on both.
  target_compile_options(psring_kernels PRIVATE -fmad=false $<$<BOOL:${PSRING_WERROR}>:-Werror=all-warnings>)
  target_link_libraries(${target} PUBLIC psring_kernels CUDA::cudart_static)
  psring_cuda_facts(${target})
endfunction()

# Definitions for the C files.
function(psring_cuda_facts target)
  get_filename_component(cublas_include ${PSRING_CUBLAS_HEADER} DIRECTORY)
  target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS} ${cublas_include})
  string(REPLACE ";" ", " architectures "${CMAKE_CUDA_ARCHITECTURES}")
  set(cublas libcublas.so.${CUDAToolkit_VERSION_MAJOR})
  find_library(PSRING_CUBLAS_LIBRARY NAMES ${cublas} HINTS ${PSRING_CUDA_LIBRARY_HINTS})
  if(NOT PSRING_CUBLAS_LIBRARY) # not on this machine: the loader of the target machine finds it
    set(PSRING_CUBLAS_LIBRARY ${cublas})
  endif()
  target_compile_definitions(${target} PRIVATE
      PSRING_TOOLKIT_CUDA="${PSRING_TOOLKIT_CUDA}"
      PSRING_CUDA_ARCHITECTURES="${architectures}"
      PSRING_CUBLAS_NAME="${cublas}"
      PSRING_CUBLAS_PATH="${PSRING_CUBLAS_LIBRARY}")
endfunction()

# Profiler ranges in `target`. NVTX is headers only; it opens a profiler's library if there is one.
function(psring_nvtx target)
  find_file(PSRING_NVTX_HEADER nvtx3/nvToolsExt.h HINTS ${PSRING_CUDA_INCLUDE_HINTS})
  if(PSRING_NVTX_HEADER)
    target_include_directories(${target} SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
    target_compile_definitions(${target} PRIVATE PSRING_NVTX)
    target_link_libraries(${target} PUBLIC ${CMAKE_DL_LIBS})
    set(PSRING_HAVE_NVTX ON PARENT_SCOPE)
  endif()
endfunction()
