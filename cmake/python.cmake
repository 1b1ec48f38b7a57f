# The Python module _native. In a checkout it is placed into python/onnxtrain/ (ignored by git);
# in a wheel it is installed over libonnxtrain.so (docs/decisions/0135).
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
find_package(nanobind CONFIG REQUIRED)

file(GLOB native_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.cpp)
# NB_DOMAIN: other nanobind modules in the process (onnx has one) do not share our types.
nanobind_add_module(_native NB_STATIC NOMINSIZE NOSTRIP NB_DOMAIN onnxtrain NB_SUPPRESS_WARNINGS
  ${native_sources} $<$<NOT:$<BOOL:${SKBUILD}>>:$<TARGET_OBJECTS:ot_api>>)
target_include_directories(_native PRIVATE ${CMAKE_SOURCE_DIR}/include)
if(SKBUILD)
  target_link_libraries(_native PRIVATE onnxtrain_flags onnxtrain_shared)
else()
  target_link_libraries(_native PRIVATE onnxtrain_flags $<LINK_ONLY:onnxtrain_core>)
endif()
onnxtrain_exports(_native ${CMAKE_SOURCE_DIR}/python/src/exports.map)

if(SKBUILD)
  # onnxtrain/lib: libonnxtrain and libdnnl; onnxtrain/bin: the program, which a small script starts
  # wherever pip puts scripts; onnxtrain/examples: the demo with a part of MNIST.
  set_target_properties(_native PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  set_target_properties(onnxtrain_shared PROPERTIES INSTALL_RPATH "$ORIGIN")
  set_target_properties(onnxtrain_cli PROPERTIES INSTALL_RPATH "$ORIGIN/../lib")
  install(TARGETS _native LIBRARY DESTINATION onnxtrain)
  install(TARGETS onnxtrain_shared LIBRARY DESTINATION onnxtrain/lib)
  install(TARGETS onnxtrain_cli RUNTIME DESTINATION onnxtrain/bin)
  if(ONNXTRAIN_ONEDNN)
    install(FILES ${ONNXTRAIN_DNNL_FILE} DESTINATION onnxtrain/lib)
  endif()
  onnxtrain_install_plugins(onnxtrain/lib)
  install(PROGRAMS tools/package/onnxtrain DESTINATION ${SKBUILD_SCRIPTS_DIR})
  onnxtrain_install_samples(onnxtrain/examples)
  onnxtrain_install_licences(${SKBUILD_METADATA_DIR})
else()
  set_target_properties(_native PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/python/onnxtrain)
endif()
