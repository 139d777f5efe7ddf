# Runs at every build (cmake -P). Writes the commit of the build into the header OUT. The header changes only when the
# commit changes, and only then are the files that include it recompiled.
execute_process(COMMAND git describe --always --dirty --abbrev=12 --exclude=*
                WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit ERROR_QUIET
                OUTPUT_STRIP_TRAILING_WHITESPACE)
if(NOT commit)
  set(commit unknown) # no git, or not a clone
endif()
set(text "#define PSRING_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS "${OUT}")
  file(READ "${OUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUT}" "${text}")
endif()
