# The Python module _native. In a checkout it is placed into python/onnxtrain/ (ignored by git);
# in a wheel it is installed with libdnnl in onnxtrain/lib/.
execute_process(COMMAND ${Python_EXECUTABLE} -m nanobind --cmake_dir
  OUTPUT_VARIABLE nanobind_ROOT OUTPUT_STRIP_TRAILING_WHITESPACE)
find_package(nanobind CONFIG REQUIRED)

file(GLOB native_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/python/src/*.cpp)
# NB_DOMAIN: other nanobind modules in the process (onnx has one) do not share our types.
nanobind_add_module(_native NB_STATIC NOMINSIZE NOSTRIP NB_DOMAIN onnxtrain NB_SUPPRESS_WARNINGS
  ${native_sources} $<TARGET_OBJECTS:ot_api>)
target_include_directories(_native PRIVATE ${CMAKE_SOURCE_DIR}/include)
target_link_libraries(_native PRIVATE onnxtrain_flags $<LINK_ONLY:onnxtrain_core>)
onnxtrain_exports(_native ${CMAKE_SOURCE_DIR}/python/src/exports.map)

if(SKBUILD)
  set_target_properties(_native PROPERTIES INSTALL_RPATH "$ORIGIN/lib")
  set(python_dir python${Python_VERSION_MAJOR}.${Python_VERSION_MINOR}/site-packages/onnxtrain)
  set_target_properties(onnxtrain_cli PROPERTIES
    INSTALL_RPATH "$ORIGIN/../lib/${python_dir}/lib:$ORIGIN/../lib64/${python_dir}/lib")
  install(TARGETS _native LIBRARY DESTINATION onnxtrain)
  install(FILES ${ONNXTRAIN_DNNL_FILE} DESTINATION onnxtrain/lib)
  install(TARGETS onnxtrain_cli RUNTIME DESTINATION ${SKBUILD_SCRIPTS_DIR})
else()
  set_target_properties(_native PROPERTIES
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_SOURCE_DIR}/python/onnxtrain)
endif()
