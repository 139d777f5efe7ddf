# cmake -P: writes the C file OUT with report_assets of experiments/report/report.h. Each of FOLDER/*.{html,css,js}
# becomes an array of bytes that ends with a 0.
file(GLOB files "${FOLDER}/*.html" "${FOLDER}/*.css" "${FOLDER}/*.js")
set(arrays "")
set(list "")
set(number 0)
foreach(file IN LISTS files)
  file(READ "${file}" text HEX)
  string(REGEX REPLACE "(..)" "0x\\1," text "${text}")
  get_filename_component(name "${file}" NAME)
  string(APPEND arrays "static const unsigned char asset_${number}[] = {${text}0};\n")
  string(APPEND list "    {\"${name}\", asset_${number}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUT}" "#include \"experiments/report/report.h\"\n\n${arrays}\n"
  "const struct report_asset report_assets[] = {\n${list}    {0}};\n")
