# psring_test(name label COMMAND ... [TIMEOUT seconds] [WAITS] [THREADS]): what add_test does, with what every
# test needs. A command NAME.sh is a script of the folder.
#
# The label is what the test needs:
#   quick    a core: one process, whose ranks are threads over loopback (spawn.h). A few seconds.
#   network  several processes over loopback, or a virtual cluster.
#   slow     longer than some ten seconds on a calm machine, whatever it takes
# The presets give ten places (ctest -j 10), as many as two cores have work for. A test of one core takes two of
# them, one with several processes four; WAITS: it mostly waits, so it takes one, and it begins first.
#
# THREADS: its program has threads, so that it runs under ThreadSanitizer too. It gets the label `threads` as well, and
# the target tests_with_threads builds it.
#
# The time-out only guards against hanging: a busy machine must not reach it. A test that lacks what it
# needs ends with 77 and says why: tests/may_skip.txt names those that may.
add_custom_target(tests_with_threads)
set(psring_timeout_quick 240)
set(psring_timeout_network 300)
set(psring_timeout_slow 600)

function(psring_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 test "WAITS;THREADS" "TIMEOUT" "COMMAND")
  if(NOT DEFINED psring_timeout_${label})
    message(FATAL_ERROR "psring_test(${name}): the label '${label}' is none of quick, network, slow.")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${psring_timeout_${label}})
  endif()
  if(test_COMMAND MATCHES "^[a-z_]+\\.sh(;|$)")
    string(PREPEND test_COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/)
  endif()
  add_test(NAME ${name} COMMAND ${test_COMMAND})
  set(environment LC_ALL=C) # scripts look for words of other programs, and awk for points in numbers
  if(NOT label STREQUAL "quick")
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0) # Open MPI keeps what it allocates
  endif()
  if(test_WAITS)
    set_tests_properties(${name} PROPERTIES COST 1000)
  elseif(label STREQUAL "quick")
    set_tests_properties(${name} PROPERTIES PROCESSORS 2)
  else()
    set_tests_properties(${name} PROPERTIES PROCESSORS 4)
  endif()
  set(labels ${label})
  if(test_THREADS)
    list(APPEND labels threads)
    list(GET test_COMMAND 0 program)
    if(NOT TARGET ${program})
      message(FATAL_ERROR "psring_test(${name}): with THREADS the command must be a target, found '${program}'.")
    endif()
    add_dependencies(tests_with_threads ${program})
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${test_TIMEOUT} SKIP_RETURN_CODE 77
                       ENVIRONMENT "${environment}")
  set_property(GLOBAL APPEND PROPERTY PSRING_TESTS_WITH_LABEL ${name})
endfunction()

# psring_test_program(name libraries...): of name.c, for tests.
function(psring_test_program name)
  add_executable(${name} ${name}.c)
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_compile_options(${name} PRIVATE ${PSRING_WARNINGS})
  if("PkgConfig::CRITERION" IN_LIST ARGN)
    target_compile_options(${name} PRIVATE -Wno-strict-prototypes) # its macros
  endif()
endfunction()

# A test that this build cannot have: reported as skipped, with the reason, instead of not at all.
function(psring_absent_test name reason)
  psring_test(${name} quick COMMAND sh -c "echo \"$0\"; exit 77" "${name}: skipped: ${reason}")
endfunction()

# Every test of this folder and those in it has been made by psring_test().
function(psring_check_tests)
  get_property(with_label GLOBAL PROPERTY PSRING_TESTS_WITH_LABEL)
  set(folders ${CMAKE_CURRENT_SOURCE_DIR})
  while(folders)
    list(POP_FRONT folders folder)
    get_property(tests DIRECTORY ${folder} PROPERTY TESTS)
    get_property(inner DIRECTORY ${folder} PROPERTY SUBDIRECTORIES)
    list(APPEND folders ${inner})
    foreach(name IN LISTS tests)
      if(NOT name IN_LIST with_label)
        message(FATAL_ERROR "${folder}/CMakeLists.txt: the test '${name}' has no label. "
                            "Make it with psring_test() (tests/psring_test.cmake), not add_test().")
      endif()
    endforeach()
  endwhile()
endfunction()
