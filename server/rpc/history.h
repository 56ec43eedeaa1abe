#pragma once
// History: what the calls read from disk: specs, ended jobs that left memory, past events. A port,
// so that no SQL reaches this layer; the daemon puts the store's reader behind it.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/event.h"

namespace gpuq::rpc {

/// An ended job as it was archived.
struct ArchivedJob {
  Job job;
  JobClass cls;
  std::string queue_name;
  std::string share_name;
  std::optional<JobArray> array;        ///< That it is, or that it is a member of.
  std::vector<Attempt> attempts;        ///< By number. Empty in lists.
  std::vector<Preemption> preemptions;  ///< Oldest first. Empty in lists.
};

/// Names of the records that archived jobs refer to, those since removed included.
struct ArchiveNames {
  std::map<UnitId, std::string> units;
  std::map<NodeId, std::string> nodes;
};

/// Which archived jobs a page holds; all conditions given must hold.
struct ArchiveFilter {
  std::string user;
  std::string queue;
  std::string share;
  std::string name_glob;
  std::vector<JobState> states;
  std::vector<JobId> jobs;  ///< Any of.
  bool members = true;      ///< False: no members of arrays.
  JobId first;              ///< Smallest id wanted; 0 = no bound.
  JobId last;               ///< Largest id wanted; 0 = no bound.
  bool newest_first = true;
  std::int32_t limit = 100;  ///< 1..1000
};

struct PastEvents {
  std::vector<Event> events;  ///< By id.
  EventId last;               ///< Where to go on.
  bool more = false;
};

/// Thread-safe; calls block on the disk: only on the worker pool.
class History {
 public:
  virtual ~History() = default;
  /// Spec bytes of a job, live or archived; of a member those of its array. kNotFound.
  virtual Result<std::string> spec(JobId job) = 0;
  /// kNotFound when the archive has no such job.
  virtual Result<ArchivedJob> archived(JobId job) = 0;
  virtual Result<std::vector<ArchivedJob>> archived_page(const ArchiveFilter& filter) = 0;
  virtual Result<ArchiveNames> names() = 0;
  /// Events after `after`, oldest first, at most `limit` (1..1000). kOutOfRange: no longer kept.
  virtual Result<PastEvents> events_after(EventId after, std::int32_t limit) = 0;
  /// The oldest event kept; the next one to come when none is.
  virtual Result<EventId> first_event() = 0;
};

}  // namespace gpuq::rpc
