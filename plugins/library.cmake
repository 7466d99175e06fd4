# Plugins over libraries of others, which the core opens at run time by the C tables of src/vendor.

# plugin_module(TARGET SOURCE...): such a module.
function(plugin_module target)
  add_library(${target} MODULE ${ARGN})
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES PREFIX "lib" CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
endfunction()

# plugin_of_library(TARGET TITLE OPTION o FOUND variable... MISSING text INCLUDE folder... LINK library... SOURCES file...):
# the same, where the option is on and find_path() and find_library() have found what they set; else a message.
function(plugin_of_library target title)
  cmake_parse_arguments(of "" "OPTION;MISSING" "FOUND;INCLUDE;LINK;SOURCES" ${ARGN})
  if(NOT ${of_OPTION})
    message(STATUS "${title} plugin: switched off (${of_OPTION})")
    return()
  endif()
  foreach(needed ${of_FOUND})
    if(NOT ${needed})
      message(STATUS "${title} plugin: ${of_MISSING}")
      return()
    endif()
  endforeach()
  plugin_module(${target} ${of_SOURCES})
  target_include_directories(${target} SYSTEM PRIVATE ${of_INCLUDE})
  target_link_libraries(${target} PRIVATE ${of_LINK})
endfunction()
