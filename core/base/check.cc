#include "core/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace gpuq {

void check_failed(const char* expression, const char* file, int line, std::string_view detail) {
  std::fprintf(stderr, "%s:%d: broken invariant: %s %.*s\n", file, line, expression,
               static_cast<int>(detail.size()), detail.data());
  std::abort();
}

}  // namespace gpuq
