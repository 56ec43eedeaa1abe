#pragma once
// Reads the policy part of a YAML tree; shared by policy files and scenarios.
#include <string>
#include <vector>

#include "common/policy/yaml_reader.h"
#include "core/model/policy.h"

namespace gpuq {

/// The document under `node`; shape and ranges are checked, references are not. Keys of kinds that
/// are absent stay nullopt. `path` is prefixed to the paths of issues.
PolicyDoc read_policy(const YamlNode& node, const std::string& path,
                      std::vector<FileIssue>& issues);

/// Words of `resource_sharing.strategy`.
inline constexpr std::initializer_list<std::pair<const char*, SharingStrategy>> kStrategyWords{
    {"RESERVE", SharingStrategy::kReserve},
    {"LEND", SharingStrategy::kLend},
    {"LEND_AND_BORROW", SharingStrategy::kLendAndBorrow}};
/// Words of `user_order`.
inline constexpr std::initializer_list<std::pair<const char*, UserOrder>> kUserOrderWords{
    {"FIFO", UserOrder::kFifo}, {"FAIR", UserOrder::kFair}};
inline constexpr std::initializer_list<std::pair<const char*, bool>> kEnabledWords{
    {"ENABLED", true}, {"DISABLED", false}};

inline constexpr std::int32_t kMaxBorrowPercent = 1'000'000;

}  // namespace gpuq
