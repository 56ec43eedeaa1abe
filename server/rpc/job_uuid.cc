#include "server/rpc/job_uuid.h"

#include <fmt/compile.h>
#include <fmt/format.h>

#include <charconv>
#include <cstdint>

namespace gpuq::rpc {

namespace {

// 62 bits of the lower half carry the number, the upper half only names the store.
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 62) - 1;
constexpr std::uint64_t kVariant = std::uint64_t{2} << 62;
constexpr std::uint64_t kVersionMask = 0xf000;
constexpr std::uint64_t kVersion = 0x8000;

std::uint64_t fnv1a(std::string_view text, std::uint64_t seed) {
  std::uint64_t hash = 0xcbf29ce484222325ULL ^ seed;
  for (const char c : text) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::uint64_t upper(std::string_view store_id) {
  return (fnv1a(store_id, 1) & ~kVersionMask) | kVersion;
}

std::uint64_t mask(std::string_view store_id) { return fnv1a(store_id, 2) & kNumberMask; }

std::optional<std::uint64_t> hex(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

std::string job_uuid(std::string_view store_id, JobId job) {
  const std::uint64_t high = upper(store_id);
  const std::uint64_t low =
      ((static_cast<std::uint64_t>(job.value) & kNumberMask) ^ mask(store_id)) | kVariant;
  return fmt::format(FMT_COMPILE("{:08x}-{:04x}-{:04x}-{:04x}-{:012x}"), high >> 32,
                     (high >> 16) & 0xffff, high & 0xffff, low >> 48, low & 0xffffffffffffULL);
}

std::optional<JobId> job_of_uuid(std::string_view store_id, std::string_view uuid) {
  if (uuid.size() != 36 || uuid[8] != '-' || uuid[13] != '-' || uuid[18] != '-' ||
      uuid[23] != '-') {
    return std::nullopt;
  }
  const auto a = hex(uuid.substr(0, 8)), b = hex(uuid.substr(9, 4)), c = hex(uuid.substr(14, 4)),
             d = hex(uuid.substr(19, 4)), e = hex(uuid.substr(24));
  if (!a || !b || !c || !d || !e) return std::nullopt;
  const std::uint64_t high = *a << 32 | *b << 16 | *c;
  const std::uint64_t low = *d << 48 | *e;
  if (high != upper(store_id) || low >> 62 != 2) return std::nullopt;
  const auto number = static_cast<std::int64_t>((low & kNumberMask) ^ mask(store_id));
  if (number <= 0) return std::nullopt;
  return JobId(number);
}

}  // namespace gpuq::rpc
