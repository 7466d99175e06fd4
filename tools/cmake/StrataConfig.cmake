# Strata for programs in C++ (find_package(Strata)):
#   Strata::core    tensors, operators, gradients, graphs, files
#   Strata::strata  the same with modules, optimisers and data
get_filename_component(_strata_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
if(NOT TARGET Strata::core)
  add_library(Strata::core SHARED IMPORTED)
  set_target_properties(Strata::core PROPERTIES IMPORTED_LOCATION "${_strata_prefix}/lib/libstrata.so" IMPORTED_SONAME libstrata.so
                        INTERFACE_INCLUDE_DIRECTORIES "${_strata_prefix}/include" INTERFACE_COMPILE_FEATURES cxx_std_20
                        INTERFACE_LINK_OPTIONS "-Wl,-rpath-link,${_strata_prefix}/lib")
  add_library(Strata::strata SHARED IMPORTED)
  set_target_properties(Strata::strata PROPERTIES IMPORTED_LOCATION "${_strata_prefix}/lib/libstrata_nn.so" IMPORTED_SONAME libstrata_nn.so
                        INTERFACE_LINK_LIBRARIES Strata::core)
endif()
unset(_strata_prefix)
