#pragma once
// SharedBytes: bytes that are written once and then held by many, as a job's spec is on its way
// from the wire to the store. Copies are cheap and may be used in any thread.
#include <memory>
#include <string>
#include <utility>

namespace gpuq {

class SharedBytes {
 public:
  SharedBytes() = default;
  explicit SharedBytes(std::string bytes)
      : bytes_(std::make_shared<const std::string>(std::move(bytes))) {}

  /// Empty where nothing was given. Valid as long as some copy lives.
  [[nodiscard]] const std::string& get() const {
    static const std::string kEmpty;
    return bytes_ ? *bytes_ : kEmpty;
  }

 private:
  std::shared_ptr<const std::string> bytes_;
};

}  // namespace gpuq
