#include <algorithm>
#include <utility>

#include "tests/store/random_rows.h"

namespace gpuq::store {
namespace {

template <typename Map>
auto values(const Map& map) {
  std::vector<typename Map::mapped_type> result;
  for (const auto& [key, value] : map) result.push_back(value);
  return result;
}

bool same(const JobClass& a, const JobClass& b) { return a.id == b.id && a.same_as(b); }
template <typename Record>
bool same(const Record& a, const Record& b) {
  return a == b;
}

template <typename Record>
std::string compare(const char* kind, const std::vector<Record>& a, const std::vector<Record>& b) {
  const std::size_t both = std::min(a.size(), b.size());
  for (std::size_t i = 0; i < both; ++i) {
    if (!same(a[i], b[i])) return std::string(kind) + " number " + std::to_string(i) + " differs";
  }
  if (a.size() != b.size()) {
    return std::string(kind) + ": " + std::to_string(a.size()) + " and " + std::to_string(b.size());
  }
  return {};
}

}  // namespace

void ExpectedStore::archive(JobId id) {
  Archived record;
  record.job = jobs.at(id);
  record.cls = all_classes.at(record.job.cls);
  std::erase_if(attempts, [&](const auto& entry) {
    if (entry.second.job != id) return false;
    record.attempts.push_back(entry.second);
    return true;
  });
  std::erase_if(preemptions, [&](const auto& entry) {
    if (entry.second.job != id) return false;
    record.preemptions.push_back(entry.second);
    return true;
  });
  jobs.erase(id);
  archived.emplace(id, std::move(record));
}

void ExpectedStore::apply(const CommitBatch& batch) {
  const RowChanges& rows = batch.rows;
  if (rows.policy) policy = *rows.policy;
  for (const Node& record : rows.nodes) nodes[record.id] = record;
  for (const JobClass& record : rows.classes) classes[record.id] = record;
  for (const JobClass& record : rows.classes) all_classes[record.id] = record;
  for (const Job& record : rows.jobs) jobs[record.id] = record;
  for (const JobArray& record : rows.arrays) arrays[record.id] = record;
  for (const PutSpec& record : rows.specs) specs[record.id] = record.bytes.get();
  for (const Attempt& record : rows.attempts) attempts[record.id] = record;
  for (const Booking& record : rows.bookings) bookings[record.job] = record;
  for (const Preemption& record : rows.preemptions) preemptions[record.id] = record;
  for (const TokenRecord& record : rows.tokens) tokens[record.key] = record;
  for (const UsageRecord& record : rows.usage) usage[record.key] = record;
  for (const JobId id : rows.drop_bookings) bookings.erase(id);
  for (const JobId id : rows.archive_jobs) archive(id);
  for (const ClassId id : rows.drop_classes) classes.erase(id);
  for (const NodeId id : rows.drop_nodes) nodes.erase(id);
  for (const std::string& key : rows.drop_tokens) tokens.erase(key);
  for (const UsageKey& key : rows.drop_usage) usage.erase(key);
  events.insert(events.end(), batch.events.begin(), batch.events.end());
  counters = batch.counters;
  last_time = batch.time;
}

StoredState ExpectedStore::state() const {
  StoredState result;
  result.last_time = last_time;
  result.counters = counters;
  result.policy = policy;
  result.nodes = values(nodes);
  result.classes = values(classes);
  result.jobs = values(jobs);
  for (const auto& [id, array] : arrays) {
    if (jobs.contains(id)) result.arrays.push_back(array);
  }
  result.attempts = values(attempts);
  result.bookings = values(bookings);
  result.preemptions = values(preemptions);
  result.tokens = values(tokens);
  result.usage = values(usage);
  return result;
}

std::string difference(const StoredState& a, const StoredState& b) {
  if (a.last_time != b.last_time) return "time differs";
  if (a.counters != b.counters) return "counters differ";
  if (a.policy != b.policy) return "policy differs";
  for (const std::string& found :
       {compare("node", a.nodes, b.nodes), compare("class", a.classes, b.classes),
        compare("job", a.jobs, b.jobs), compare("array", a.arrays, b.arrays),
        compare("attempt", a.attempts, b.attempts), compare("booking", a.bookings, b.bookings),
        compare("preemption", a.preemptions, b.preemptions), compare("token", a.tokens, b.tokens),
        compare("usage", a.usage, b.usage)}) {
    if (!found.empty()) return found;
  }
  return {};
}

bool same_event(const Event& a, const Event& b) {
  const auto key = [](const Event& e) {
    return std::tie(e.id, e.at, e.wall_ms, e.type, e.actor, e.job, e.attempt, e.queue, e.share,
                    e.node, e.job_state, e.detail);
  };
  return key(a) == key(b);
}

}  // namespace gpuq::store
