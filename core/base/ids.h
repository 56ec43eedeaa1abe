#pragma once
// Strong ids: a JobId is no AttemptId. Ids are plain integers from persisted counters that never go
// back; 0 means "none".
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace gpuq {

template <typename Tag, typename Rep>
struct StrongId {
  Rep value = 0;

  constexpr StrongId() = default;
  constexpr explicit StrongId(Rep v) : value(v) {}
  [[nodiscard]] constexpr bool valid() const { return value != 0; }
  constexpr auto operator<=>(const StrongId&) const = default;
};

using JobId = StrongId<struct JobTag, std::int64_t>;
using AttemptId = StrongId<struct AttemptTag, std::int64_t>;
using EventId = StrongId<struct EventTag, std::int64_t>;
using ClassId = StrongId<struct ClassTag, std::int64_t>;
using PreemptionId = StrongId<struct PreemptionTag, std::int64_t>;
using UnitId = StrongId<struct UnitTag, std::int32_t>;
using EnvId = StrongId<struct EnvTag, std::int32_t>;
using PolicyId = StrongId<struct PolicyTag, std::int32_t>;
using QueueId = StrongId<struct QueueTag, std::int32_t>;
using ShareId = StrongId<struct ShareTag, std::int32_t>;
using NodeId = StrongId<struct NodeTag, std::int32_t>;

}  // namespace gpuq

template <typename Tag, typename Rep>
struct std::hash<gpuq::StrongId<Tag, Rep>> {
  std::size_t operator()(const gpuq::StrongId<Tag, Rep>& id) const noexcept {
    return std::hash<Rep>{}(id.value);
  }
};
