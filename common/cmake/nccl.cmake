# NCCL, for --backend nccl in builds with CUDA: PSRING_NCCL and the target PSRING::NCCL. It lies with
# CUDA's toolkit, in the system, or in the folder of the Python package that PyTorch brings along
# (nvidia/nccl, whose library has no name without a version).
set(PSRING_NCCL OFF)
set(PSRING_TOOLKIT_NCCL "")
if(PSRING_HAVE_CUDA)
  psring_python_folder(nvidia.nccl nccl_python)
  find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${PSRING_CUDA_INCLUDE_HINTS} ${nccl_python}/include)
  find_library(NCCL_LIBRARY NAMES nccl libnccl.so.2
               HINTS ${PSRING_CUDA_LIBRARY_HINTS} ${nccl_python}/lib)
  if(NCCL_INCLUDE_DIR AND NCCL_LIBRARY)
    set(PSRING_NCCL ON)
    set(PSRING_TOOLKIT_NCCL "${NCCL_LIBRARY}")
    add_library(PSRING::NCCL UNKNOWN IMPORTED)
    set_target_properties(PSRING::NCCL PROPERTIES
                          IMPORTED_LOCATION ${NCCL_LIBRARY}
                          INTERFACE_INCLUDE_DIRECTORIES ${NCCL_INCLUDE_DIR}
                          INTERFACE_LINK_LIBRARIES CUDA::cudart_static)
  else()
    message(STATUS "NCCL is missing: --backend nccl will say so. Install NCCL (nccl.h, libnccl; "
                   "Python: nvidia-nccl-cu${CUDAToolkit_VERSION_MAJOR}) and configure again.")
  endif()
endif()
