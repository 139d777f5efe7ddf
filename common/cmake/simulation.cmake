# psring-simulate: the unchanged collectives in SimGrid. Its files replace those that measure time, start threads and
# move messages (experiments/simulate/simulated_*.c).
find_path(SIMGRID_INCLUDE_DIR simgrid/actor.h)
find_library(SIMGRID_LIBRARY simgrid)
find_program(SIMGRID_SMPIRUN smpirun)
if(NOT SIMGRID_INCLUDE_DIR OR NOT SIMGRID_LIBRARY OR NOT SIMGRID_SMPIRUN)
  message(FATAL_ERROR "SimGrid (Debian: libsimgrid-dev) is missing: run experiments/setup.sh --simulate, which installs it.")
endif()

set(simulated ${CMAKE_SOURCE_DIR}/experiments/simulate/simulated)
target_sources(psring_base PRIVATE ${simulated}_clock.c ${simulated}_thread.c)
target_sources(psring_net PRIVATE ${simulated}_network.c ${simulated}_transport.c ${simulated}_world.c)
foreach(library IN ITEMS psring_base psring_net psring_experiments)
  target_include_directories(${library} SYSTEM PUBLIC ${SIMGRID_INCLUDE_DIR} ${SIMGRID_INCLUDE_DIR}/smpi)
  target_link_libraries(${library} PUBLIC ${SIMGRID_LIBRARY})
endforeach()

# smpirun loads this as a library and calls its main in every rank.
add_library(psring-simulate MODULE experiments/simulate/simulate.c)
set_target_properties(psring-simulate PROPERTIES PREFIX "" SUFFIX "")
target_link_libraries(psring-simulate PRIVATE psring_experiments)
target_compile_options(psring-simulate PRIVATE ${PSRING_WARNINGS})

# Reads a model.json for simulate.sh --cost-model.
if(PSRING_PREDICT)
  add_executable(psring-links experiments/predict/links.c)
  target_link_libraries(psring-links PRIVATE psring_predict)
  target_compile_options(psring-links PRIVATE ${PSRING_WARNINGS})
endif()
