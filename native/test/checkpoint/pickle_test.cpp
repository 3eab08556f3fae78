#include "core/checkpoint/pickle.h"

#include <ATen/ATen.h>

#include "core/runtime/error.h"
#include "test/checkpoint_files.h"
#include "test/test.h"

using namespace carillon;
using test::pickled_text;
using namespace std::string_literals;

namespace {

PickleValue read(const std::string& opcodes) { return unpickle("\x80\x02" + opcodes + ".", "stream"); }

template <typename T>
T read_as(const std::string& opcodes) {
  const auto value = read(opcodes);
  const T* const found = value.as<T>();
  EXPECT(found != nullptr);
  return *found;
}

const std::string kTensor = "ctorch._utils\n_rebuild_tensor_v2\n((" + pickled_text("storage") +
                            "ctorch\nHalfStorage\n" + pickled_text("7") + pickled_text("cpu") +
                            "K\x0ctQK\x02K\x02K\x03\x86K\x01K\x04\x86\x89" +
                            "ccollections\nOrderedDict\n)RtR";

}  // namespace

TEST("pickle: reads numbers, text and constants in every encoding") {
  EXPECT_EQ(read_as<int64_t>("K\xff"), 255);
  EXPECT_EQ(read_as<int64_t>("M\x01\x02"), 513);
  EXPECT_EQ(read_as<int64_t>("J\xfe\xff\xff\xff"), -2);
  EXPECT_EQ(read_as<int64_t>("\x8a\x00"s), 0);
  EXPECT_EQ(read_as<int64_t>("\x8a\x01\xfd"), -3);
  EXPECT_EQ(read_as<int64_t>("\x8a\x06\x00\x00\x00\x00\x00\x01"s), int64_t{1} << 40);
  EXPECT_EQ(read_as<double>("G\x3f\xf8\0\0\0\0\0\0"s), 1.5);
  EXPECT_EQ(read_as<bool>("\x88"), true);
  EXPECT_EQ(read_as<bool>("\x89"), false);
  EXPECT(read("N").as<std::nullptr_t>() != nullptr);
  EXPECT_EQ(*read_as<PickleValue::Text>(pickled_text("glüh")), "glüh");
  EXPECT_EQ(*read_as<PickleValue::Text>("\x8c\x02hi"), "hi");
}

TEST("pickle: keeps the last value of a dictionary key and skips lists") {
  const auto values = *read_as<PickleValue::Dictionary>(
      "}(" + pickled_text("a") + "K\x01" + pickled_text("l") + "](K\x01K\x02" + "eu" + pickled_text("a") + "K\x05s" +
      pickled_text("t") + "K\x01\x85s");
  EXPECT_EQ(values.size(), size_t{3});
  EXPECT_EQ(*values.at("a").as<int64_t>(), 5);
  EXPECT_EQ((*values.at("t").as<PickleValue::Tuple>())->size(), size_t{1});
  EXPECT(values.at("l").as<PickleValue::Opaque>() != nullptr);
}

TEST("pickle: resolves memo references") {
  const auto values = *read_as<PickleValue::Tuple>(pickled_text("a") + "q\x00"s + "h\x00j\x00\x00\x00\x00\x87"s);
  for (const auto& value : values) EXPECT_EQ(**value.as<PickleValue::Text>(), "a");
  const auto pair = *read_as<PickleValue::Tuple>(pickled_text("b") + "r\x00\x01\x00\x00j\x00\x01\x00\x00\x86"s);
  EXPECT_EQ(**pair[1].as<PickleValue::Text>(), "b");
  const auto framed = *read_as<PickleValue::Tuple>(
      "\x8c\x01"
      "a\x94\x8c\x01"
      "b\x94h\x00\x87"s);
  EXPECT_EQ(**framed[2].as<PickleValue::Text>(), "a");
}

TEST("pickle: reads a tensor as storage, offset, sizes and strides") {
  const auto tensor = read_as<std::shared_ptr<const PickleTensor>>(kTensor);
  EXPECT_EQ(tensor->storage.key, "7");
  EXPECT(tensor->storage.dtype == at::kHalf);
  EXPECT_EQ(tensor->storage.elements, 12);
  EXPECT_EQ(tensor->offset, 2);
  EXPECT((tensor->sizes == std::vector<int64_t>{2, 3}) && (tensor->strides == std::vector<int64_t>{1, 4}));
}

TEST("pickle: reads a parameter as its tensor and skips attributes of a dictionary") {
  const std::string parameter = "ctorch._utils\n_rebuild_parameter\n(" + kTensor +
                                "\x88"
                                "ccollections\nOrderedDict\n)RtR";
  EXPECT_EQ(read_as<std::shared_ptr<const PickleTensor>>(parameter)->storage.key, "7");
  const auto state =
      *read_as<PickleValue::Dictionary>("}" + pickled_text("a") + "K\x01s}" + pickled_text("_metadata") + "}sb");
  EXPECT_EQ(state.size(), size_t{1});
  EXPECT_THROWS(read("K\x01}b"), "it sets attributes of an object");
  EXPECT_THROWS(read("ctorch._utils\n_rebuild_parameter\n(K\x01tR"), "a parameter has the wrong number of arguments");
}

TEST("pickle: rejects anything that would run code") {
  EXPECT_THROWS(read("cos\nsystem\n(" + pickled_text("true") + "tR"), "it calls 'os system'");
  EXPECT_THROWS(read("\x8c\x02os\x8c\x06system\x93" + pickled_text("true") + "\x85R"), "it calls 'os system'");
  EXPECT_THROWS(read("ctorch.jit._pickle\nrestore_type_tag\n)R"), "it calls 'torch.jit._pickle restore_type_tag'");
  for (const char opcode : "bioP\x81\x82\x92"s)
    EXPECT_THROWS(read("}"s + opcode), "stream: not a pickle of plain data");
}

TEST("pickle: limits nesting, also through memo references") {
  std::string deep = "N";
  for (int i = 0; i < 17; ++i) deep += "\x85";
  EXPECT_THROWS(read(deep), "nested too deeply");
  std::string doubling = "Nq\x00"s;
  for (int i = 0; i < 17; ++i) doubling += "h\x00\x86q\x00"s;
  EXPECT_THROWS(read(doubling), "nested too deeply");
  const auto holder = *read_as<PickleValue::Dictionary>("}q\x00"s + pickled_text("self") + "h\x00s"s);
  EXPECT(holder.at("self").as<PickleValue::Opaque>() != nullptr);
}

TEST("pickle: reports the error of a malformed stream") {
  EXPECT_THROWS(unpickle("", "stream"), "it is truncated");
  EXPECT_THROWS(unpickle("\x80\x09N.", "stream"), "protocol 9 is not supported");
  EXPECT_THROWS(read(""), "in the middle of a value");
  EXPECT_THROWS(read("NN"), "in the middle of a value");
  EXPECT_THROWS(read("(N"), "in the middle of a value");
  EXPECT_THROWS(read("N(\x85t"), "needs more values than the stack has");
  EXPECT_THROWS(read("t"), "a mark is missing");
  EXPECT_THROWS(read("h\x03"), "an undefined memo entry");
  EXPECT_THROWS(read("}(Nu"), "a key without value");
  EXPECT_THROWS(read("}NNs"), "the key of a dictionary has the wrong type");
  EXPECT_THROWS(read("\x8a\x09" + std::string(9, 'x')), "does not fit 64 bits");
  EXPECT_THROWS(read(pickled_text("storage") + "\x85Q"), "a storage is malformed");
  EXPECT_THROWS(read("X\xff\xff\xff\xffshort"), "it is truncated");
  for (size_t size = 0; size < kTensor.size(); ++size) {
    EXPECT_THROWS(unpickle("\x80\x02" + kTensor.substr(0, size), "stream"), "not a pickle of plain data");
  }
}
