# psring_test(name label COMMAND ... [PSRING target] [TIMEOUT seconds] [WAITS] [SANITIZE sanitizers] [SATELLITES
# names]): calls add_test and sets label, time-out, environment and places. A command NAME.sh is the script of that
# name in any folder of tests/. PSRING and MAKE_DATASET in the environment name the programs that scripts test: psring
# (or the target PSRING) and make_dataset. The folder is a label of the test, too: `ctest -L '^ring$'` runs the tests
# of ring/.
#
# The label names the needs of the test. mutants.sh uses the quick ones.
#
#    quick    a few seconds: one process with threads as ranks (spawn.h), or a few processes over loopback.
#    network  several processes over loopback, or a virtual cluster.
#    slow     longer than about ten seconds on an idle machine, with any of these needs.
#
# The presets give ten places (ctest -j 10), which keep two cores busy. A quick test takes two places, another test
# three, because its processes also wait. A test with WAITS mostly waits and takes one. The longest tests start first.
# psring_seconds has their times, alone on two cores, and a default time for each label.
#
# SANITIZE names the sanitizers (address, thread) under which the test runs again. The test owns memory that no other
# one owns, or its threads share memory. Scripts that only drive launchers and shell code need none. In a build with the
# sanitizer the test has the label `sanitized`. The target `sanitized` builds the programs in its command.
#
# A test needs the satellite of its folder, such as tests/report, and those that SATELLITES names. In a build without
# one of them (-DPSRING_REPORT=OFF) the test does not exist.
#
# The time-out only guards against hanging: a busy machine must not reach it. A test that lacks something prints what,
# and ends with 77. tests/may_skip.txt names the tests that may do so.
set(psring_seconds
    machines 150 cuda_gpu_check 130 spin 100 failures 80 stalls 65 fault_trials 60 strangers 50 test_vcluster 45 bench 40 cuda_sweep 35 slurm 35
    test_run_scaling 35 test_distance 30 install 35 live 30 train 30 elastic 30 restart 40 run_consistency 25 wire_bytes 25 bottleneck 25 cuda_nccl_faults 20
    cuda_train_emulated 20 test_page 20 addresses 20 rendezvous 20 auto_command 15 test_allreduce 15 test_fit 15
    bytes 12 simulate 12 test_membership 8 test_rendezvous 8 test_watchdog_close 8 test_server 8
    quick 1 network 10 slow 20)
set(psring_timeout_quick 600)
set(psring_timeout_network 600)
set(psring_timeout_slow 900)

# psring_test_file(variable name): the path of the file of that name in a folder of tests/.
file(GLOB psring_test_files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/*/*.c ${CMAKE_SOURCE_DIR}/tests/*/*.sh)
function(psring_test_file variable name)
  set(found ${psring_test_files})
  list(FILTER found INCLUDE REGEX "/${name}$")
  list(LENGTH found count)
  if(NOT count EQUAL 1)
    message(FATAL_ERROR "tests/*/${name}: found ${count} files of this name, expected one.")
  endif()
  set(${variable} ${found} PARENT_SCOPE)
endfunction()

# psring_satellites_missing(variable names...): the satellites among the names that this build does not have.
function(psring_satellites_missing variable)
  set(missing "")
  foreach(name IN LISTS ARGN)
    if(name MATCHES "^(elastic|predict|report|trace)$")
      string(TOUPPER PSRING_${name} built)
      if(NOT ${built})
        list(APPEND missing ${name})
      endif()
    endif()
  endforeach()
  set(${variable} "${missing}" PARENT_SCOPE)
endfunction()

function(psring_test name label)
  cmake_parse_arguments(PARSE_ARGV 2 test "WAITS" "TIMEOUT;PSRING" "COMMAND;SANITIZE;SATELLITES")
  if(NOT DEFINED psring_timeout_${label})
    message(FATAL_ERROR "psring_test(${name}): found label '${label}', expected quick, network or slow.")
  endif()
  if(NOT test_TIMEOUT)
    set(test_TIMEOUT ${psring_timeout_${label}})
  endif()
  set(environment LC_ALL=C) # for other programs' messages, and for decimal points in awk
  set(programs ${test_COMMAND})
  set(folder "")
  if(NOT test_PSRING)
    set(test_PSRING psring)
  endif()
  if(test_COMMAND MATCHES "^([a-z_]+\\.sh)(;|$)")
    set_property(GLOBAL APPEND PROPERTY PSRING_TEST_SCRIPTS ${CMAKE_MATCH_1})
    psring_test_file(script ${CMAKE_MATCH_1})
    list(POP_FRONT test_COMMAND)
    list(PREPEND test_COMMAND ${script})
    list(APPEND programs ${test_PSRING} make_dataset)
    list(APPEND environment PSRING=$<TARGET_FILE:${test_PSRING}> MAKE_DATASET=$<TARGET_FILE:make_dataset>)
    if(script MATCHES "/tests/([a-z_]+)/" AND NOT CMAKE_MATCH_1 STREQUAL "lib")
      set(folder ${CMAKE_MATCH_1})
    endif()
  else()
    list(GET test_COMMAND 0 program)
    set(source ${psring_test_files})
    list(FILTER source INCLUDE REGEX "/${program}\\.c$")
    if(source MATCHES "/tests/([a-z_]+)/")
      set(folder ${CMAKE_MATCH_1})
    endif()
  endif()
  psring_satellites_missing(missing ${folder} ${test_SATELLITES})
  if(missing)
    return()
  endif()
  add_test(NAME ${name} COMMAND ${test_COMMAND})
  set(labels ${label} ${folder})
  foreach(sanitizer IN LISTS test_SANITIZE)
    if(NOT sanitizer MATCHES "^(address|thread)$")
      message(FATAL_ERROR "psring_test(${name}): SANITIZE ${sanitizer}: expected address or thread.")
    endif()
    if(sanitizer IN_LIST PSRING_SANITIZE)
      list(APPEND labels sanitized)
      psring_programs_of(programs ${programs})
      set_property(GLOBAL APPEND PROPERTY PSRING_SANITIZED_PROGRAMS ${programs})
    endif()
  endforeach()
  if(NOT label STREQUAL "quick")
    list(APPEND environment ASAN_OPTIONS=detect_leaks=0) # Open MPI does not free its memory
  endif()
  if(name MATCHES "^cuda_")
    list(APPEND environment OPENBLAS_NUM_THREADS=1) # threads of cuBLAS's stand-in would spin while they wait
  endif()
  set(processors 3)
  if(test_WAITS)
    set(processors 1)
  elseif(label STREQUAL "quick")
    set(processors 2)
  endif()
  list(FIND psring_seconds ${name} at)
  if(at EQUAL -1)
    list(FIND psring_seconds ${label} at)
  endif()
  math(EXPR at "${at} + 1")
  list(GET psring_seconds ${at} seconds)
  set_tests_properties(${name} PROPERTIES PROCESSORS ${processors} COST ${seconds})
  set_tests_properties(${name} PROPERTIES LABELS "${labels}" TIMEOUT ${test_TIMEOUT} SKIP_RETURN_CODE 77
                       ENVIRONMENT "${environment}")
  set_property(GLOBAL APPEND PROPERTY PSRING_TESTS_WITH_LABEL ${name})
endfunction()

# psring_programs_of(variable words...): the targets among the words of a command.
function(psring_programs_of variable)
  set(programs "")
  foreach(word IN LISTS ARGN)
    if(word MATCHES "^\\$<TARGET_FILE:(.*)>$")
      set(word ${CMAKE_MATCH_1})
    endif()
    if(TARGET ${word})
      list(APPEND programs ${word})
    endif()
  endforeach()
  set(${variable} ${programs} PARENT_SCOPE)
endfunction()

# psring_test_program(name libraries...): a program from name.c in any folder of tests/.
function(psring_test_program name)
  psring_test_file(source ${name}.c)
  add_executable(${name} ${source})
  target_link_libraries(${name} PRIVATE ${ARGN})
  target_compile_options(${name} PRIVATE ${PSRING_WARNINGS})
  if("PkgConfig::CRITERION" IN_LIST ARGN)
    target_compile_options(${name} PRIVATE -Wno-strict-prototypes) # its macros
  endif()
endfunction()

# psring_link_without(target pattern libraries...): links the libraries and their dependencies, except those that
# match the pattern.
function(psring_link_without target pattern)
  set(seen "")
  set(libraries ${ARGN})
  while(libraries)
    list(POP_FRONT libraries next)
    if(next IN_LIST seen OR next MATCHES ${pattern})
      continue()
    endif()
    list(APPEND seen ${next})
    if(TARGET ${next} AND next MATCHES "^psring_")
      get_target_property(inner ${next} INTERFACE_LINK_LIBRARIES)
      if(inner)
        list(APPEND libraries ${inner})
      endif()
    endif()
  endwhile()
  foreach(next IN LISTS seen)
    set(type "")
    if(TARGET ${next} AND next MATCHES "^psring_")
      get_target_property(type ${next} TYPE)
    endif()
    if(type STREQUAL "STATIC_LIBRARY")
      add_dependencies(${target} ${next})
      list(APPEND archives $<TARGET_FILE:${next}>)
    else()
      list(APPEND others ${next})
    endif()
  endforeach()
  target_link_libraries(${target} PRIVATE -Wl,--start-group ${archives} -Wl,--end-group ${others})
endfunction()

# psring_absent_test(name reason): makes a test that this build cannot have. ctest reports it as skipped, with the
# reason.
function(psring_absent_test name reason)
  psring_test(${name} quick COMMAND sh -c "echo \"$0\"; exit 77" "${name}: skipped: ${reason}")
endfunction()

# Checks that psring_test() made every test of this folder and its subfolders. Makes the target `sanitized`, which
# builds the programs of sanitized tests.
function(psring_check_tests)
  get_property(programs GLOBAL PROPERTY PSRING_SANITIZED_PROGRAMS)
  list(REMOVE_DUPLICATES programs)
  add_custom_target(sanitized DEPENDS ${programs})
  get_property(scripts GLOBAL PROPERTY PSRING_TEST_SCRIPTS)
  set(present ${psring_test_files})
  list(FILTER present INCLUDE REGEX "/test_[a-z_]+\\.sh$")
  if(NOT TARGET psring_emulated) # ctest reports those in tests/emulation as skipped
    list(FILTER present EXCLUDE REGEX "/tests/emulation/")
  endif()
  foreach(path IN LISTS present)
    get_filename_component(script ${path} NAME)
    if(NOT script IN_LIST scripts)
      message(FATAL_ERROR "${path} is not a test, so it never runs. Add it with psring_test() in "
                          "tests/CMakeLists.txt.")
    endif()
  endforeach()
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
