# Install rules: bin/onnxtrain, libonnxtrain.so with headers, CMake package and pkg-config file.
# libdnnl goes into a private folder beside it, found through a relative RPATH.
# In a wheel (SKBUILD) only the CLI and the Python module are installed: see python.cmake.

# The MNIST demo with 600 training and 100 test images of each digit.
function(onnxtrain_install_samples folder)
  set(subset ${CMAKE_BINARY_DIR}/mnist_subset)
  execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/package/mnist_subset.py
    ${CMAKE_SOURCE_DIR}/examples/mnist/data ${subset} COMMAND_ERROR_IS_FATAL ANY)
  install(DIRECTORY ${subset}/ DESTINATION ${folder}/mnist/data)
  install(FILES examples/mnist/cnn.train.onnx examples/mnist/mlp.train.onnx
    DESTINATION ${folder}/mnist)
endfunction()

# The licences of what is linked in, and the list of it (CycloneDX).
function(onnxtrain_install_licences folder)
  set(made ${CMAKE_BINARY_DIR}/third_party)
  set(without "")
  if(NOT ONNXTRAIN_ONEDNN)
    set(without --without oneDNN)
  endif()
  execute_process(COMMAND ${Python_EXECUTABLE} ${CMAKE_SOURCE_DIR}/tools/package/third_party.py
    ${made} --version ${PROJECT_VERSION} ${without} COMMAND_ERROR_IS_FATAL ANY)
  install(DIRECTORY ${made}/ DESTINATION ${folder})
endfunction()

# Plug-ins for MPI: those that tools/mpi_plugin.sh has built for packages, else those of this build.
# They are looked for when things are installed. Where an MPI library lies is the other machine's
# matter.
function(onnxtrain_install_plugins folder)
  install(CODE "
    file(GLOB plugins ${CMAKE_SOURCE_DIR}/build/mpi/libonnxtrain_mpi_*.so)
    if(NOT plugins)
      file(GLOB plugins ${CMAKE_BINARY_DIR}/libonnxtrain_mpi_*.so)
    endif()
    set(folder \"\${CMAKE_INSTALL_PREFIX}/${folder}\")
    foreach(plugin IN LISTS plugins)
      file(INSTALL \${plugin} DESTINATION \${folder} TYPE SHARED_LIBRARY)
      get_filename_component(name \${plugin} NAME)
      file(RPATH_REMOVE FILE \"\$ENV{DESTDIR}\${folder}/\${name}\")
    endforeach()")
endfunction()

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
onnxtrain_install_plugins(${private_libdir})
if(ONNXTRAIN_ONEDNN)
  install(FILES ${ONNXTRAIN_DNNL_FILE} DESTINATION ${private_libdir})
endif()

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

set(doc_dir ${CMAKE_INSTALL_DATAROOTDIR}/doc/onnxtrain)
install(FILES LICENSE DESTINATION ${doc_dir} RENAME copyright)
install(FILES README.md CHANGELOG.md docs/c-and-cpp.md DESTINATION ${doc_dir})
onnxtrain_install_samples(${CMAKE_INSTALL_DATAROOTDIR}/onnxtrain/examples)
onnxtrain_install_licences(${doc_dir})

# The man page and the completions are what the program says about itself.
if(NOT CMAKE_CROSSCOMPILING)
  set(said ${CMAKE_BINARY_DIR}/said)
  foreach(form "reference man" "completion bash" "completion zsh" "completion fish")
    string(REPLACE " " ";" arguments ${form})
    list(GET arguments 1 name)
    install(CODE "file(MAKE_DIRECTORY ${said})
      execute_process(COMMAND $<TARGET_FILE:onnxtrain_cli> ${arguments}
        OUTPUT_FILE ${said}/${name} COMMAND_ERROR_IS_FATAL ANY)")
  endforeach()
  set(share ${CMAKE_INSTALL_DATAROOTDIR})
  install(FILES ${said}/man DESTINATION ${share}/man/man1 RENAME onnxtrain.1)
  install(FILES ${said}/bash DESTINATION ${share}/bash-completion/completions RENAME onnxtrain)
  install(FILES ${said}/zsh DESTINATION ${share}/zsh/vendor-completions RENAME _onnxtrain)
  install(FILES ${said}/fish DESTINATION ${share}/fish/vendor_completions.d RENAME onnxtrain.fish)
endif()

# make dist, make deb: cpack over the same rules.
set(CPACK_PACKAGE_NAME onnxtrain)
set(CPACK_PACKAGE_VENDOR onnxtrain)
set(CPACK_PACKAGE_CONTACT "the onnxtrain project <onnxtrain@localhost>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "trains ONNX models: command line tool and C/C++ library")
set(CPACK_PACKAGE_FILE_NAME onnxtrain-${PROJECT_VERSION}-linux-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 2)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_DEPENDS "libc6 (>= 2.34), libgomp1, libstdc++6, zlib1g")
set(CPACK_DEBIAN_PACKAGE_SUGGESTS "libwebp7, libopenjp2-7")
set(CPACK_DEBIAN_PACKAGE_CONTROL_EXTRA ${CMAKE_SOURCE_DIR}/tools/package/triggers)
include(CPack)
