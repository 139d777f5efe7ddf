# libpsring: the collective operations for other programs, behind one header (common/psring.h), and what `cmake
# --install` installs. It is compiled separately from the program's libraries, as position-independent code in which
# only psring_* is visible. It contains only what it needs (no CBLAS, no CUDA; MPI only with PSRING_LIBRARY_MPI).
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

file(GLOB_RECURSE library_sources CONFIGURE_DEPENDS
     ${CMAKE_SOURCE_DIR}/common/net/*.c ${CMAKE_SOURCE_DIR}/common/library/*.c)
file(GLOB ring_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/ring/*.c)
list(FILTER library_sources EXCLUDE REGEX "/net/watchdog[a-z_]*\\.c$") # for processes that psring has started
add_library(psring_shared SHARED
            ${library_sources}
            common/base/clock.c common/base/descriptors.c common/base/range.c common/base/status.c common/base/text.c common/base/thread.c
            common/comm/bucket.c common/comm/codec.c common/comm/comm_place.c common/comm/comm_thread.c
            common/comm/compress.c common/comm/cost.c common/comm/reduce.c
            ${ring_sources})
target_link_libraries(psring_shared PRIVATE psring_sys PkgConfig::ZMQ OpenSSL::SSL)
if(PSRING_LIBRARY_MPI)
  target_link_libraries(psring_shared PRIVATE MPI::MPI_C)
  target_compile_definitions(psring_shared PRIVATE PSRING_HAVE_MPI)
endif()
target_compile_options(psring_shared PRIVATE ${PSRING_WARNINGS})
target_link_options(psring_shared PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/common/cmake/psring.map)
if(NOT PSRING_SANITIZE)
  target_link_options(psring_shared PRIVATE LINKER:--no-undefined LINKER:--as-needed)
endif()
target_include_directories(psring_shared INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/common>
                                                   $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

# Before 1.0 a new minor version may break anything.
set(library_soversion ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
set_target_properties(psring_shared PROPERTIES
                      OUTPUT_NAME psring EXPORT_NAME psring C_VISIBILITY_PRESET hidden
                      LINK_DEPENDS ${CMAKE_SOURCE_DIR}/common/cmake/psring.map
                      VERSION ${PROJECT_VERSION} SOVERSION ${library_soversion})
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/common/psring.h)
file(STRINGS common/psring.h header_version REGEX "^#define PSRING_VERSION_(MAJOR|MINOR|PATCH) ")
list(TRANSFORM header_version REPLACE "^.* " "")
list(JOIN header_version "." header_version)
if(NOT header_version VERSION_EQUAL PROJECT_VERSION)
  message(FATAL_ERROR "common/psring.h has version ${header_version}, CMakeLists.txt ${PROJECT_VERSION}: make them equal.")
endif()

set(library_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/psring)
file(RELATIVE_PATH library_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /) # relative, for any prefix
configure_file(common/cmake/psring.pc.in generated/psring.pc @ONLY)
write_basic_package_version_file(generated/psring-config-version.cmake COMPATIBILITY SameMinorVersion)
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME libpsring) # cmake --install BUILD --component libpsring
install(TARGETS psring_shared EXPORT psring LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT libpsring NAMELINK_COMPONENT libpsring)
install(FILES common/psring.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT psring NAMESPACE psring:: FILE psring-config.cmake DESTINATION ${library_cmake_dir})
install(FILES ${CMAKE_BINARY_DIR}/generated/psring-config-version.cmake DESTINATION ${library_cmake_dir})
install(FILES ${CMAKE_BINARY_DIR}/generated/psring.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
unset(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME)

# The same code as one object for `bench --via-library`, so that psring stays one file that can be copied. All symbols
# except psring_* are local in it. It therefore has a second copy of the code that it shares with the program.
if(PSRING_PROGRAM)
  set(library_object ${CMAKE_BINARY_DIR}/libpsring.o)
  set(library_linker ${CMAKE_LINKER})
  if(library_linker MATCHES "lld") # CMake's choice with clang; it lacks --force-group-allocation
    find_program(PSRING_GNU_LINKER NAMES ld.bfd ld REQUIRED)
    set(library_linker ${PSRING_GNU_LINKER})
  endif()
  add_custom_command(OUTPUT ${library_object}
                     COMMAND ${library_linker} -r --force-group-allocation -o ${library_object} $<TARGET_OBJECTS:psring_shared>
                     COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=psring_* ${library_object}
                     DEPENDS $<TARGET_OBJECTS:psring_shared>
                     COMMAND_EXPAND_LISTS VERBATIM)
  set_source_files_properties(${library_object} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  add_library(psring_within STATIC ${library_object})
  set_target_properties(psring_within PROPERTIES LINKER_LANGUAGE C)
  target_link_libraries(psring_within PUBLIC psring_sys PkgConfig::ZMQ OpenSSL::SSL)
  if(PSRING_LIBRARY_MPI)
    target_link_libraries(psring_within PUBLIC MPI::MPI_C)
  endif()
endif()
