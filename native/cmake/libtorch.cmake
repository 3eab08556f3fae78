# Finds libtorch (2.11 to 2.14) and defines the target carillon_libtorch.
#
# LIBTORCH (cache or environment variable) names a directory with include/ and
# lib/: an unpacked libtorch or the `torch` folder of a Python installation.
# Headers and libraries are named here instead of through TorchConfig.cmake,
# which requires a CUDA toolkit at the paths of the machine that built the wheel.
if(NOT LIBTORCH)
  set(LIBTORCH "$ENV{LIBTORCH}")
endif()
set(LIBTORCH "${LIBTORCH}" CACHE PATH "libtorch directory")
if(NOT EXISTS "${LIBTORCH}/include/ATen/ATen.h")
  message(FATAL_ERROR "libtorch not found at '${LIBTORCH}'. Set LIBTORCH to a directory with include/ and lib/.")
endif()

find_library(CARILLON_TORCH_CPU torch_cpu PATHS ${LIBTORCH}/lib NO_DEFAULT_PATH REQUIRED NO_CACHE)
find_library(CARILLON_C10 c10 PATHS ${LIBTORCH}/lib NO_DEFAULT_PATH REQUIRED NO_CACHE)
find_library(CARILLON_TORCH_CUDA torch_cuda PATHS ${LIBTORCH}/lib NO_DEFAULT_PATH NO_CACHE)
find_library(CARILLON_C10_CUDA c10_cuda PATHS ${LIBTORCH}/lib NO_DEFAULT_PATH NO_CACHE)

add_library(carillon_libtorch INTERFACE)
target_include_directories(carillon_libtorch SYSTEM INTERFACE
  ${LIBTORCH}/include ${LIBTORCH}/include/torch/csrc/api/include)
target_link_libraries(carillon_libtorch INTERFACE ${CARILLON_TORCH_CPU} ${CARILLON_C10})

if(CARILLON_TORCH_CUDA AND CARILLON_C10_CUDA AND NOT CARILLON_ANY_LIBTORCH)
  set(CARILLON_CUDA ON)
  # No symbol of libtorch_cuda is referenced, so the linker would drop it; it registers itself when loaded.
  target_link_libraries(carillon_libtorch INTERFACE
    "-Wl,--no-as-needed" ${CARILLON_TORCH_CUDA} ${CARILLON_C10_CUDA} "-Wl,--as-needed")
else()
  set(CARILLON_CUDA OFF)
endif()

set(CMAKE_BUILD_RPATH "${LIBTORCH}/lib")
set(CMAKE_INSTALL_RPATH "${LIBTORCH}/lib")
