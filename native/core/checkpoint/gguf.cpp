#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>

#include "core/checkpoint/tensor_file.h"
#include "core/runtime/error.h"

namespace carillon {
namespace {

enum Type : uint32_t { kF32 = 0, kF16 = 1, kQ4_0 = 2, kQ8_0 = 8, kQ4_K = 12, kQ5_K = 13, kQ6_K = 14, kBf16 = 30 };

/// Size of a block of a GGUF type: how many numbers it has, in how many bytes.
struct BlockSize {
  int64_t numbers, bytes;
};

constexpr int64_t kSuper = 256, kCodes = kernels::kCodeBlock;

std::optional<BlockSize> block_size(uint32_t type) {
  switch (type) {
    case kF32:
      return BlockSize{1, 4};
    case kF16:
    case kBf16:
      return BlockSize{1, 2};
    case kQ4_0:
      return BlockSize{kCodes, 2 + 16};
    case kQ8_0:
      return BlockSize{kCodes, 2 + 32};
    case kQ4_K:
      return BlockSize{kSuper, 2 + 2 + 12 + 128};
    case kQ5_K:
      return BlockSize{kSuper, 2 + 2 + 12 + 32 + 128};
    case kQ6_K:
      return BlockSize{kSuper, 128 + 64 + 16 + 2};
    default:
      return std::nullopt;
  }
}

float read_half(const uint8_t* p) {
  c10::Half half;
  std::memcpy(&half, p, sizeof half);
  return half;
}

/// Reads the fields of the header in order; reading past the end is an error.
class Cursor {
 public:
  Cursor(const MappedFile& file, const std::string& path) : file_(file), path_(path) {}

  size_t position() const { return position_; }
  const char* take(uint64_t size) {
    if (size > file_.size() - position_) {
      fail(ErrorCode::kBadCheckpoint, path_ + ": the header ends in the middle: the file is truncated");
    }
    const char* const data = file_.data() + position_;
    position_ += size;
    return data;
  }
  template <typename T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value), sizeof value);
    return value;
  }
  std::string text() {
    const auto size = number<uint64_t>();
    return {take(size), size};
  }
  /// Reads past a metadata value. Returns the value if it is a uint32, else nullopt.
  std::optional<uint64_t> value(uint32_t type) {
    constexpr uint32_t kUint32 = 4, kString = 8, kArray = 9;
    constexpr uint64_t kSizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
    if (type == kUint32) return number<uint32_t>();
    if (type == kString) {
      text();
    } else if (type == kArray) {
      const auto element = number<uint32_t>();
      const auto count = number<uint64_t>();
      if (element < std::size(kSizes) && kSizes[element] > 0) {
        if (count > file_.size()) take(count);
        take(count * kSizes[element]);
      } else {
        if (element == kArray) fail(ErrorCode::kBadCheckpoint, path_ + ": nested arrays in metadata are not supported");
        for (uint64_t i = 0; i < count; ++i) value(element);
      }
    } else if (type < std::size(kSizes)) {
      take(kSizes[type]);
    } else {
      fail(ErrorCode::kBadCheckpoint, path_ + ": metadata of unknown type " + std::to_string(type));
    }
    return std::nullopt;
  }

 private:
  const MappedFile& file_;
  const std::string& path_;
  size_t position_ = 0;
};

// Block layouts: https://github.com/ggml-org/ggml/blob/master/src/ggml-common.h. Every function reads one block.

/// Scale and minimum of part `index` of a block. A block of Q4_K or Q5_K has eight parts. Their scales and minimums
/// have 6 bits each and are packed into 12 bytes.
std::pair<int, int> packed_scale(const uint8_t* bytes, int index) {
  if (index < 4) return {bytes[index] & 63, bytes[index + 4] & 63};
  return {(bytes[index + 4] & 15) | bytes[index - 4] >> 6 << 4, bytes[index + 4] >> 4 | bytes[index] >> 6 << 4};
}

void read_q5_k(const uint8_t* block, float* out) {
  const float scale = read_half(block), minimum = read_half(block + 2);
  const uint8_t* const high = block + 16;
  for (int part = 0; part < 8; ++part) {
    const auto [factor, lowest] = packed_scale(block + 4, part);
    const uint8_t* const low = block + 48 + part / 2 * kCodes;
    for (int i = 0; i < kCodes; ++i) {
      const int code = (low[i] >> part % 2 * 4 & 15) | (high[i] >> part & 1) << 4;
      *out++ = scale * static_cast<float>(factor * code) - minimum * static_cast<float>(lowest);
    }
  }
}

void read_q6_k(const uint8_t* block, float* out) {
  const float scale = read_half(block + 208);
  for (int i = 0; i < kSuper; ++i) {
    const int half = i / 128, quarter = i % 128 / 32, lane = i % 32;
    const int low = block[half * 64 + quarter % 2 * 32 + lane] >> quarter / 2 * 4 & 15;
    const int high = block[128 + half * 32 + lane] >> quarter * 2 & 3;
    const auto factor = static_cast<int8_t>(block[192 + i / 16]);
    out[i] = scale * static_cast<float>(factor * ((low | high << 4) - 32));
  }
}

/// Reads the codes and scales of one block of Q4_0, Q8_0 or Q4_K. The scales have the form of kernels::Matrix::scales.
void read_codes(uint32_t type, const uint8_t* block, uint8_t* codes, c10::Half* scales) {
  if (type == kQ8_0) {
    std::memcpy(scales, block, sizeof *scales);
    std::memcpy(codes, block + 2, kCodes);
    return;
  }
  if (type == kQ4_0) {
    scales[0] = read_half(block);
    scales[1] = -8 * read_half(block);
    for (int i = 0; i < kCodes; ++i) codes[i] = block[2 + i % 16] >> i / 16 * 4 & 15;
    return;
  }
  for (int part = 0; part < 8; ++part) {
    const auto [factor, lowest] = packed_scale(block + 4, part);
    scales[2 * part] = read_half(block) * static_cast<float>(factor);
    scales[2 * part + 1] = -read_half(block + 2) * static_cast<float>(lowest);
    const uint8_t* const low = block + 16 + part / 2 * kCodes;
    for (int i = 0; i < kCodes; ++i) *codes++ = low[i] >> part % 2 * 4 & 15;
  }
}

}  // namespace

Gguf::Gguf(const std::string& path) : TensorFile(path) {
  constexpr uint64_t kMostDimensions = 4;
  Cursor cursor(*file_, path_);
  if (file_->size() < 4 || std::memcmp(cursor.take(4), "GGUF", 4) != 0) {
    fail(ErrorCode::kBadCheckpoint, path_ + ": not a GGUF file");
  }
  const auto version = cursor.number<uint32_t>();
  if (version != 2 && version != 3) {
    fail(ErrorCode::kBadCheckpoint, path_ + ": GGUF version " + std::to_string(version) + ", expected 2 or 3");
  }
  const auto tensors = cursor.number<uint64_t>(), fields = cursor.number<uint64_t>();
  size_t alignment = 32;
  for (uint64_t i = 0; i < fields; ++i) {
    const std::string key = cursor.text();
    const auto value = cursor.value(cursor.number<uint32_t>());
    if (key == "general.alignment" && value) alignment = *value;
  }
  if (alignment == 0 || alignment % 8 != 0) {
    fail(ErrorCode::kBadCheckpoint, path_ + ": general.alignment is not a multiple of 8");
  }

  for (uint64_t i = 0; i < tensors; ++i) {
    const std::string name = cursor.text();
    const auto dimensions = cursor.number<uint32_t>();
    if (dimensions > kMostDimensions) {
      fail(ErrorCode::kBadCheckpoint,
           path_ + ": tensor '" + name + "' has " + std::to_string(dimensions) + " dimensions");
    }
    Entry entry;
    for (uint32_t d = 0; d < dimensions; ++d) entry.shape.push_back(cursor.number<int64_t>());
    std::reverse(entry.shape.begin(), entry.shape.end());  // GGUF stores the innermost dimension first
    entry.type = cursor.number<uint32_t>();
    entry.begin = cursor.number<uint64_t>();  // from the start of the data; made absolute below
    if (!entries_.emplace(name, entry).second) {
      fail(ErrorCode::kBadCheckpoint, path_ + ": tensor '" + name + "' appears twice");
    }
  }
  const size_t data = (cursor.position() + alignment - 1) / alignment * alignment;
  for (auto& [name, entry] : entries_) {
    const auto bad = [&, &name = name](const std::string& what) {
      fail(ErrorCode::kBadCheckpoint, path_ + ": tensor '" + name + "' " + what);
    };
    const auto block = block_size(entry.type);
    if (!block) {
      bad("has the GGUF type " + std::to_string(entry.type) +
          ", which is not supported; use F32, F16, BF16, Q8_0, Q4_0, Q4_K, Q5_K or Q6_K");
    }
    uint64_t size = static_cast<uint64_t>(block->bytes);
    if (entry.shape.empty() && block->numbers > 1) {
      bad("is a scalar, but its type has blocks of " + std::to_string(block->numbers));
    }
    for (size_t d = 0; d < entry.shape.size(); ++d) {
      const int64_t extent = entry.shape[d];
      const bool is_row = d + 1 == entry.shape.size();
      if (extent <= 0 || (is_row && extent % block->numbers != 0)) {
        bad("has an impossible shape " + shape_text(entry.shape));
      }
      const auto factor = static_cast<uint64_t>(is_row ? extent / block->numbers : extent);
      if (__builtin_mul_overflow(size, factor, &size)) bad("has an impossible shape " + shape_text(entry.shape));
    }
    if (data > file_->size() || entry.begin > file_->size() - data || size > file_->size() - data - entry.begin) {
      bad("lies past the end: the file is truncated");
    }
    if (entry.begin % alignment != 0) bad("does not start at a multiple of general.alignment");
    entry.begin += data;
    entry.size = size;
  }
}

const uint8_t* Gguf::data(const Entry& entry) const {
  return reinterpret_cast<const uint8_t*>(file_->data()) + entry.begin;
}

at::Tensor Gguf::tensor(const std::string& name) const {
  const Entry& found = entry(name);
  if (found.type == kF32 || found.type == kF16 || found.type == kBf16) {
    const auto dtype = found.type == kF32 ? at::kFloat : found.type == kF16 ? at::kHalf : at::kBFloat16;
    return at::from_blob(const_cast<uint8_t*>(data(found)), found.shape, [file = file_](void*) {}, at::dtype(dtype));
  }
  if (found.type != kQ5_K && found.type != kQ6_K) return codes(name)->dense(at::kFloat).view(found.shape);
  const at::Tensor numbers = at::empty(found.shape, at::kFloat);
  const BlockSize block = *block_size(found.type);
  const auto read = found.type == kQ5_K ? read_q5_k : read_q6_k;
  auto* out = numbers.mutable_data_ptr<float>();
  for (int64_t i = 0; i < numbers.numel() / kSuper; ++i) read(data(found) + i * block.bytes, out + i * kSuper);
  return numbers;
}

std::optional<kernels::Matrix> Gguf::codes(const std::string& name) const {
  const Entry& found = entry(name);
  if (found.type == kF32 || found.type == kF16 || found.type == kBf16 || found.shape.empty()) return std::nullopt;
  const int64_t depth = found.shape.back();
  if (found.type == kQ5_K || found.type == kQ6_K) {
    return kernels::quantize(tensor(name).view({-1, depth}), kernels::Quantization::kInt8);
  }
  const BlockSize block = *block_size(found.type);
  const bool is_int8 = found.type == kQ8_0;
  const int64_t outputs = c10::multiply_integers(found.shape) / depth, scale_count = is_int8 ? 1 : 2;
  const at::Tensor codes = at::empty({outputs, depth}, is_int8 ? at::kChar : at::kByte);
  const at::Tensor scales = at::empty({outputs, depth / kCodes, scale_count}, at::kHalf);
  auto* const code = static_cast<uint8_t*>(codes.mutable_data_ptr());
  auto* const scale = scales.mutable_data_ptr<c10::Half>();
  for (int64_t i = 0; i < outputs * depth / block.numbers; ++i) {
    const int64_t first = i * block.numbers;
    read_codes(found.type, data(found) + i * block.bytes, code + first, scale + first / kCodes * scale_count);
  }
  return kernels::from_codes(codes, is_int8 ? scales.squeeze(2) : scales);
}

}  // namespace carillon
