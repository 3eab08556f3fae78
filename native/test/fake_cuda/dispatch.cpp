/// Fallback for operators that no other file implements. Makes the checks that a GPU makes, then runs the CPU kernel on
/// device memory.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/LegacyTypeDispatch.h>
#include <dlfcn.h>
#include <torch/library.h>

#include <algorithm>
#include <fstream>
#include <set>
#include <unordered_map>

#include "counters.h"
#include "device.h"
#include "graph.h"
#include "kernels.h"
#include "memory.h"

namespace fake_cuda {

at::Tensor host_alias(const at::Tensor& tensor) {
  if (!tensor.defined() || !tensor.is_cuda()) return tensor;
  const auto options = at::TensorOptions().dtype(tensor.scalar_type()).device(at::kCPU);
  if (tensor.numel() == 0) return at::empty_strided(tensor.sizes(), tensor.strides(), options);
  // The tensor is resizable, because some kernels use their `out` for intermediate results of another shape.
  return at::for_blob(kernel_address(tensor.const_data_ptr()), tensor.sizes())
      .strides(tensor.strides())
      .options(options)
      .resizeable_storage()
      .allocator(c10::GetAllocator(at::kCPU))
      .make_tensor();
}

at::Tensor to_device(const at::Tensor& host, c10::DeviceIndex device) {
  if (!host.defined() || !host.is_cpu()) return host;
  const c10::DeviceGuard guard(c10::Device(at::kCUDA, device));
  at::Tensor result =
      at::detail::empty_strided_generic(host.sizes(), host.strides(), &allocator(),
                                        c10::DispatchKeySet(c10::DispatchKey::CUDA), host.scalar_type());
  if (host.numel() > 0) host_alias(result).copy_(host);
  return result;
}

namespace {

/// Properties of an operator from native_functions.yaml.
struct OperatorFacts {
  bool is_known = false;
  bool has_cuda_kernel = false;
  bool is_composite = false;
  bool takes_host_scalars = false;  // allows zero-dimensional CPU tensors, because no device check is generated
  std::string delegate;             // the operator whose kernels this one uses
};
using FactTable = std::unordered_map<std::string, OperatorFacts>;

/// Reads native_functions.yaml line by line: entries begin with "- func: NAME(", kernels are lines "    KEYS: NAME".
FactTable read_facts(const std::string& path) {
  std::ifstream file(path);
  TORCH_CHECK(file, "fake_cuda needs ", path, ", which comes with libtorch's wheel");
  FactTable table;
  OperatorFacts* facts = nullptr;
  const std::string func = "- func: ", delegate = "structured_delegate: ";
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(func, 0) == 0) {
      facts = &table["aten::" + line.substr(func.size(), line.find('(') - func.size())];
      facts->is_known = true;
      continue;
    }
    if (facts == nullptr) continue;
    if (line.find("device_check: NoCheck") != std::string::npos) facts->takes_host_scalars = true;
    if (line.find("ufunc_inner_loop:") != std::string::npos) facts->has_cuda_kernel = true;
    if (const auto at = line.find(delegate); at != std::string::npos) {
      const auto begin = at + delegate.size();
      facts->delegate = "aten::" + line.substr(begin, line.find_first_of(" #", begin) - begin);
    }
    const auto colon = line.find(": ");
    if (line.rfind("    ", 0) == 0 && line[4] != '#' && colon != std::string::npos) {
      const std::string keys = ", " + line.substr(4, colon - 4) + ",";
      if (keys.find(" CUDA,") != std::string::npos) facts->has_cuda_kernel = true;
      if (keys.find(" Composite") != std::string::npos) facts->is_composite = true;
    }
  }
  for (auto& [name, own] : table) {
    if (const auto shared = table.find(own.delegate); shared != table.end()) {
      own.has_cuda_kernel |= shared->second.has_cuda_kernel;
    }
  }
  return table;
}

OperatorFacts facts_of(const std::string& name) {
  static const FactTable table = [] {
    Dl_info info{};
    dladdr(reinterpret_cast<const void*>(&at::globalContext), &info);
    const std::string library = info.dli_fname;
    const std::string wheel = library.substr(0, library.rfind("/torch/lib/"));
    return read_facts(wheel + "/torchgen/packaged/ATen/native/native_functions.yaml");
  }();
  const auto found = table.find(name);
  return found == table.end() ? OperatorFacts() : found->second;
}

/// Operators whose CUDA kernels synchronise, because the shape of the result depends on the values of the operands.
bool synchronises(const std::string& name) {
  static const std::set<std::string> names = {
      "aten::nonzero",  "aten::masked_select", "aten::_unique2",
      "aten::equal",    "aten::unique_dim",    "aten::unique_consecutive",
      "aten::bincount", "aten::is_nonzero",    "aten::repeat_interleave.Tensor"};
  return names.count(name) > 0;
}

/// Whether an operator is advanced indexing. Only advanced indexing accepts indices on the CPU; it synchronises to
/// upload them.
bool takes_host_indices(const std::string& name) {
  return name.rfind("aten::index.", 0) == 0 || name.rfind("aten::_index_put_impl_", 0) == 0 ||
         name.rfind("aten::index_put", 0) == 0;
}

/// Whether an operator is a matrix product. Products run in float32, because CPUs without bfloat16 instructions would
/// take minutes. GPUs accumulate in float32 too.
bool is_product(const std::string& name) {
  return name == "aten::mm.out" || name == "aten::addmm.out" || name == "aten::bmm.out" || name == "aten::baddbmm.out";
}

/// Whether the CPU kernel resizes its output. mse_loss writes element-wise losses to the output, then sums them. It
/// warns if the output is not empty.
bool resizes_output(const std::string& name) { return name == "aten::mse_loss.out"; }

bool is_written(const c10::Argument& argument) {
  return argument.alias_info() != nullptr && argument.alias_info()->isWrite();
}

/// A call of an operator: arguments on the stack, schema, and device of the operands.
class Call {
 public:
  Call(const c10::OperatorHandle& op, torch::jit::Stack& stack)
      : op_(op),
        schema_(op.schema()),
        name_(toString(schema_.operator_name())),
        facts_(facts_of(name_)),
        stack_(stack),
        first_(stack.size() - schema_.arguments().size()) {}

  void run() {
    const bool has_kernel = !facts_.is_known || facts_.has_cuda_kernel || facts_.is_composite;
    TORCH_CHECK_NOT_IMPLEMENTED(has_kernel, "Could not run '", name_,
                                "' with arguments from the 'CUDA' backend: it has no CUDA kernel. (fake_cuda)");
    check_devices();
    alias_arguments();
    count_launch(name_);
    if (synchronises(name_)) count_synchronisation(name_);
    if (is_capturing()) {
      for (const auto& written : written_) note_overwritten(written.first);
    }
    run_kernel();
    follow_resized();
    return_to_device();
    if (is_capturing()) note_replay();
  }

 private:
  template <typename F>
  void for_each_operand(const F& visit) {
    for (size_t i = 0; i < schema_.arguments().size(); ++i) {
      const c10::IValue& value = stack_[first_ + i];
      const c10::Argument& argument = schema_.arguments()[i];
      if (value.isTensor()) visit(value.toTensor(), argument);
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorList()) visit(tensor, argument);
      }
      if (value.isOptionalTensorList()) {
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
          if (tensor) visit(*tensor, argument);
        }
      }
      if (value.isDevice() && value.toDevice().is_cuda()) device_ = value.toDevice();
    }
  }

  void check_devices() {
    bool has_host_operand = false;
    for_each_operand([&](const at::Tensor& tensor, const c10::Argument& argument) {
      if (!tensor.defined()) return;
      if (!tensor.is_cuda()) {
        has_host_operand |= !(facts_.takes_host_scalars && tensor.dim() == 0);
        return;
      }
      TORCH_CHECK(!device_ || *device_ == tensor.device(), "Expected all tensors to be on the same device, but found ",
                  *device_, " and ", tensor.device(), " (argument ", argument.name(), " of ", name_, ")");
      device_ = tensor.device();
    });
    if (!device_) device_ = c10::Device(at::kCUDA, current_device());
    if (!has_host_operand) return;
    TORCH_CHECK(takes_host_indices(name_),
                "Expected all tensors to be on the same device, but found at least two devices, ", *device_,
                " and cpu! (in ", name_, ")");
    count_synchronisation(name_ + " (indices from the host)");
  }

  at::Tensor alias(const at::Tensor& tensor, bool write) {
    at::Tensor host = host_alias(tensor);
    if (write && tensor.defined() && tensor.is_cuda()) written_.emplace_back(tensor, host);
    if (write && resizes_output(name_)) host.resize_(0);
    return host;
  }

  void alias_arguments() {
    originals_.assign(stack_.begin() + static_cast<int64_t>(first_), stack_.end());
    for (size_t i = 0; i < schema_.arguments().size(); ++i) {
      c10::IValue& value = stack_[first_ + i];
      const bool write = is_written(schema_.arguments()[i]);
      if (value.isTensor()) {
        value = alias(value.toTensor(), write);
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorList()) list.push_back(alias(tensor, write));
        value = list;
      } else if (value.isOptionalTensorList()) {
        c10::List<std::optional<at::Tensor>> list;
        for (const std::optional<at::Tensor>& tensor : value.toOptionalTensorList()) {
          list.push_back(tensor ? std::optional(alias(*tensor, write)) : std::nullopt);
        }
        value = list;
      } else if (value.isDevice()) {
        value = c10::Device(at::kCPU);
      } else if (value.isGenerator() && value.toGenerator().defined()) {
        TORCH_CHECK(value.toGenerator().device().is_cuda(), "Expected a 'cuda' device type for generator but found '",
                    value.toGenerator().device(), "' (", name_, ")");
        value = host_generator(value.toGenerator());
      }
    }
  }

  void run_kernel() {
    std::vector<std::pair<at::Tensor, at::Tensor>> widened;  // bfloat16 output and its float32 replacement
    if (is_product(name_)) {
      for (size_t i = 0; i < schema_.arguments().size(); ++i) {
        c10::IValue& value = stack_[first_ + i];
        if (!value.isTensor() || value.toTensor().scalar_type() != at::kBFloat16) continue;
        const at::Tensor narrow = value.toTensor(), wide = narrow.to(at::kFloat);
        if (is_written(schema_.arguments()[i])) widened.emplace_back(narrow, wide);
        value = wide;
      }
    }
    {
      const at::AutoDispatchBelowADInplaceOrView below;
      op_.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), &stack_);
    }
    for (auto& [narrow, wide] : widened) {
      narrow.copy_(wide);
      stack_.back() = narrow;
    }
  }

  /// If the kernel resized an output, gives the device tensor the output's shape and content.
  void follow_resized() {
    for (auto& [tensor, host] : written_) {
      const bool is_in_place = tensor.numel() > 0 && host.const_data_ptr() == kernel_address(tensor.const_data_ptr());
      if (tensor.sizes() == host.sizes() && (is_in_place || host.numel() == 0)) continue;
      tensor.resize_(host.sizes());
      if (host.numel() > 0) host_alias(tensor).copy_(host);
    }
  }

  /// Replaces each CPU result by a device tensor. A result that aliases an operand becomes that operand's device
  /// tensor; any other result becomes a new tensor.
  void return_to_device() {
    const size_t results = schema_.returns().size();
    for (size_t i = stack_.size() - results; i < stack_.size(); ++i) {
      c10::IValue& value = stack_[i];
      if (value.isTensor()) {
        value = returned(value.toTensor());
      } else if (value.isTensorList()) {
        c10::List<at::Tensor> list;
        for (const at::Tensor& tensor : value.toTensorList()) list.push_back(to_device(tensor, device_->index()));
        value = list;
      }
    }
  }

  at::Tensor returned(const at::Tensor& host) {
    for (const auto& [tensor, aliased] : written_) {
      if (aliased.is_same(host)) return tensor;
    }
    return to_device(host, device_->index());
  }

  /// Records the call for replays. A replay reads the operand tensors of this call and writes its result tensors.
  void note_replay() {
    const torch::jit::Stack results(stack_.end() - static_cast<int64_t>(schema_.returns().size()), stack_.end());
    std::vector<at::Tensor> fresh;
    for (const at::Tensor& result : tensors_of(results)) {
      const auto is_operand = [&](const auto& written) { return written.first.is_same(result); };
      if (std::none_of(written_.begin(), written_.end(), is_operand)) fresh.push_back(result);
    }
    note_launch(
        [op = op_, operands = originals_, results, fresh] {
          torch::jit::Stack stack = operands;
          Call(op, stack).run();
          const std::vector<at::Tensor> before = tensors_of(results), now = tensors_of(stack);
          for (size_t i = 0; i < before.size(); ++i) {
            if (before[i].numel() > 0 && !before[i].is_same(now[i])) host_alias(before[i]).copy_(host_alias(now[i]));
          }
        },
        fresh);
  }

  static std::vector<at::Tensor> tensors_of(const torch::jit::Stack& values) {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : values) {
      if (value.isTensor() && value.toTensor().defined()) tensors.push_back(value.toTensor());
      if (value.isTensorList()) {
        for (const at::Tensor& tensor : value.toTensorList()) tensors.push_back(tensor);
      }
    }
    return tensors;
  }

  const c10::OperatorHandle& op_;
  const c10::FunctionSchema& schema_;
  const std::string name_;
  const OperatorFacts facts_;
  torch::jit::Stack& stack_;
  const size_t first_;  // index of the first argument on the stack
  std::optional<c10::Device> device_;
  std::vector<c10::IValue> originals_;                      // keeps the operands alive
  std::vector<std::pair<at::Tensor, at::Tensor>> written_;  // device tensor and its host alias
};

void run_on_host(const c10::OperatorHandle& op, torch::jit::Stack* stack) { Call(op, *stack).run(); }

TORCH_LIBRARY_IMPL(_, CUDA, library) { library.fallback(torch::CppFunction::makeFromBoxedFunction<&run_on_host>()); }

}  // namespace
}  // namespace fake_cuda
