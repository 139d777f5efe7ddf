# NCCL, for --backend nccl in builds with CUDA: sets PSRING_NCCL and the target PSRING::NCCL. Only its header is needed
# here. ring/baselines/nccl_open.c opens the library at run time: the one that is found here, else another one. Both
# come with CUDA's toolkit, with the system, or with the Python package that PyTorch installs (nvidia/nccl, whose
# library has no name without a version).
set(PSRING_NCCL OFF)
set(PSRING_TOOLKIT_NCCL "")
if(PSRING_HAVE_CUDA)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${PSRING_CUDA_INCLUDE_HINTS})
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2 HINTS ${PSRING_CUDA_LIBRARY_HINTS})
  if(NCCL_INCLUDE_DIR)
    set(PSRING_NCCL ON)
    set(PSRING_TOOLKIT_NCCL "where the loader looks")
    set(nccl_path "")
    if(NCCL_LIBRARY)
      set(PSRING_TOOLKIT_NCCL "${NCCL_LIBRARY}")
      set(nccl_path "${NCCL_LIBRARY}")
    endif()
    add_library(PSRING::NCCL INTERFACE IMPORTED)
    set_target_properties(PSRING::NCCL PROPERTIES
                          INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR}
                          INTERFACE_COMPILE_DEFINITIONS "PSRING_NCCL_PATH=\"${nccl_path}\""
                          INTERFACE_LINK_LIBRARIES "CUDA::cudart_static;${CMAKE_DL_LIBS}")
  else()
    message(STATUS "NCCL is missing: --backend nccl will report an error. Install NCCL (nccl.h, libnccl; "
                   "Python: nvidia-nccl-cu${CUDAToolkit_VERSION_MAJOR}) and configure again.")
  endif()
endif()
