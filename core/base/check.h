#pragma once
// Invariant checks that stay on in release builds: a broken invariant aborts, and restart is a
// tested path. Use for programming errors only; a user's mistake is an Error, a fault of the
// environment is handled.
#include <string_view>

namespace gpuq {

/// Writes the failed expression to stderr and aborts.
[[noreturn]] void check_failed(const char* expression, const char* file, int line,
                               std::string_view detail = {});

}  // namespace gpuq

#define GPUQ_CHECK(expr) \
  (static_cast<bool>(expr) ? void(0) : ::gpuq::check_failed(#expr, __FILE__, __LINE__))
#define GPUQ_CHECK_MSG(expr, detail) \
  (static_cast<bool>(expr) ? void(0) : ::gpuq::check_failed(#expr, __FILE__, __LINE__, (detail)))
