# Install rules: bin/onnxtrain, libonnxtrain.so with headers, CMake package and pkg-config file.
# libdnnl goes into a private folder beside it, found through a relative RPATH.
# In a wheel (SKBUILD) only the CLI and the Python module are installed: see python.cmake.
if(SKBUILD)
  return()
endif()
include(CMakePackageConfigHelpers)

set(private_libdir ${CMAKE_INSTALL_LIBDIR}/onnxtrain)
file(RELATIVE_PATH bin_to_lib /p/${CMAKE_INSTALL_BINDIR} /p/${private_libdir})
set_target_properties(onnxtrain_cli PROPERTIES INSTALL_RPATH "$ORIGIN/${bin_to_lib}")
set_target_properties(onnxtrain_shared PROPERTIES INSTALL_RPATH "$ORIGIN/onnxtrain")

install(TARGETS onnxtrain_cli RUNTIME)
install(TARGETS onnxtrain_shared EXPORT onnxtrain-targets LIBRARY)
install(DIRECTORY include/onnxtrain DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES ${ONNXTRAIN_DNNL_FILE} DESTINATION ${private_libdir})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/onnxtrain)
install(EXPORT onnxtrain-targets NAMESPACE onnxtrain:: DESTINATION ${package_dir})
configure_package_config_file(cmake/onnxtrain-config.cmake.in
  ${CMAKE_BINARY_DIR}/onnxtrain-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/onnxtrain-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/onnxtrain-config.cmake
  ${CMAKE_BINARY_DIR}/onnxtrain-config-version.cmake DESTINATION ${package_dir})

file(RELATIVE_PATH pc_up /p/${CMAKE_INSTALL_LIBDIR}/pkgconfig /p)
configure_file(cmake/onnxtrain.pc.in ${CMAKE_BINARY_DIR}/onnxtrain.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/onnxtrain.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
