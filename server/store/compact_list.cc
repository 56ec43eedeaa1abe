#include "server/store/compact_list.h"

#include <array>
#include <charconv>
#include <cstdint>
#include <limits>

namespace gpuq::store {
namespace {

constexpr std::size_t kMaxFields = 3;
/// More jobs than one submission can have; bounds what a damaged row makes us allocate.
constexpr std::int64_t kMaxRun = 10'000'000;

struct Tuple {
  std::array<std::int64_t, kMaxFields> values{};
  std::size_t size = 0;
};

void append(std::string& text, char separator, std::int64_t number) {
  std::array<char, 24> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr;
  if (separator != '\0') text += separator;
  text.append(digits.data(), end);
}

void start_tuple(std::string& text, std::int64_t number) {
  append(text, text.empty() ? '\0' : ',', number);
}

/// Takes the first tuple off `text`; false when it is malformed.
bool take_tuple(std::string_view& text, Tuple& tuple) {
  tuple.size = 0;
  for (;;) {
    if (tuple.size == kMaxFields) return false;
    const char* end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, tuple.values[tuple.size]);
    if (error != std::errc{}) return false;
    ++tuple.size;
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    if (text.empty()) return true;
    const char separator = text.front();
    text.remove_prefix(1);
    if (separator == ',') return !text.empty();
    if (separator != ':') return false;
  }
}

template <typename Rep>
bool narrow(std::int64_t number, Rep& value) {
  if (number < std::numeric_limits<Rep>::min() || number > std::numeric_limits<Rep>::max()) {
    return false;
  }
  value = static_cast<Rep>(number);
  return true;
}

/// Calls `add` with each tuple; false when one is malformed or not taken.
template <typename Add>
bool each_tuple(std::string_view text, Add add) {
  Tuple tuple;
  while (!text.empty()) {
    if (!take_tuple(text, tuple) || !add(tuple)) return false;
  }
  return true;
}

}  // namespace

std::string pack(const std::vector<DeviceUse>& devices) {
  std::string text;
  for (const DeviceUse& use : devices) {
    start_tuple(text, use.device);
    append(text, ':', use.milli);
    if (use.awaits.valid()) append(text, ':', use.awaits.value);
  }
  return text;
}

std::string pack(const std::vector<AwaitedHost>& hosts) {
  std::string text;
  for (const AwaitedHost& host : hosts) {
    start_tuple(text, host.attempt.value);
    append(text, ':', host.cpus);
    append(text, ':', host.memory_mib);
  }
  return text;
}

std::string pack(const std::vector<AttemptId>& attempts) {
  std::string text;
  for (const AttemptId attempt : attempts) start_tuple(text, attempt.value);
  return text;
}

std::string pack(const std::vector<Dependency>& dependencies) {
  std::string text;
  for (const Dependency& on : dependencies) {
    start_tuple(text, on.job.value);
    append(text, ':', static_cast<std::int64_t>(on.condition));
  }
  return text;
}

std::string pack(const std::vector<JobId>& jobs) {
  std::string text;
  for (std::size_t first = 0; first < jobs.size();) {
    std::size_t next = first + 1;
    while (next < jobs.size() && jobs[next].value == jobs[next - 1].value + 1) ++next;
    start_tuple(text, jobs[first].value);
    append(text, ':', static_cast<std::int64_t>(next - first));
    first = next;
  }
  return text;
}

bool unpack(std::string_view text, std::vector<DeviceUse>& devices) {
  devices.clear();
  return each_tuple(text, [&](const Tuple& tuple) {
    DeviceUse& use = devices.emplace_back();
    use.awaits = AttemptId(tuple.size == 3 ? tuple.values[2] : 0);
    return tuple.size >= 2 && narrow(tuple.values[0], use.device) &&
           narrow(tuple.values[1], use.milli);
  });
}

bool unpack(std::string_view text, std::vector<AwaitedHost>& hosts) {
  hosts.clear();
  return each_tuple(text, [&](const Tuple& tuple) {
    AwaitedHost& host = hosts.emplace_back();
    host.attempt = AttemptId(tuple.values[0]);
    host.memory_mib = tuple.values[2];
    return tuple.size == 3 && narrow(tuple.values[1], host.cpus);
  });
}

bool unpack(std::string_view text, std::vector<AttemptId>& attempts) {
  attempts.clear();
  return each_tuple(text, [&](const Tuple& tuple) {
    attempts.emplace_back(tuple.values[0]);
    return tuple.size == 1;
  });
}

bool unpack(std::string_view text, std::vector<Dependency>& dependencies) {
  dependencies.clear();
  return each_tuple(text, [&](const Tuple& tuple) {
    const std::int64_t condition = tuple.values[1];
    if (tuple.size != 2 || condition < 1 || condition > 3) return false;
    dependencies.push_back({JobId(tuple.values[0]), static_cast<DependencyCondition>(condition)});
    return true;
  });
}

bool unpack(std::string_view text, std::vector<JobId>& jobs) {
  jobs.clear();
  return each_tuple(text, [&](const Tuple& tuple) {
    const std::int64_t first = tuple.values[0];
    const std::int64_t count = tuple.values[1];
    if (tuple.size != 2 || count < 1 || count > kMaxRun ||
        first > std::numeric_limits<std::int64_t>::max() - count) {
      return false;
    }
    for (std::int64_t i = 0; i < count; ++i) jobs.emplace_back(first + i);
    return true;
  });
}

}  // namespace gpuq::store
