#include "core/runtime/philox.h"

#include "test/test.h"

namespace carillon {

TEST("philox: matches the published vectors") {
  using Words = std::array<uint32_t, 4>;
  const uint32_t ones = 0xFFFFFFFF;
  EXPECT((philox({0, 0, 0, 0}, 0) == Words{0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}));
  EXPECT((philox({ones, ones, ones, ones}, 0xFFFFFFFF'FFFFFFFF) ==
          Words{0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}));
  EXPECT((philox({0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344}, 0x299F31D0'A4093822) ==
          Words{0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}));
}

}  // namespace carillon
