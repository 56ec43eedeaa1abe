#pragma once
// HistoryReader: what the store knows that memory does not: specs, archived jobs, past events.
// Reads committed data only, from any thread, and blocks: call it from a worker pool, not from the
// engine's thread.
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/base/result.h"
#include "core/model/event.h"

namespace gpuq::store {

/// Names of the records that archived jobs refer to, those since removed included.
struct HistoryNames {
  std::map<UnitId, std::string> units;
  std::map<NodeId, std::string> nodes;
};

/// An ended job as the archive keeps it.
struct ArchivedJob {
  Job job;
  JobClass cls;
  std::optional<JobArray> array;  ///< That it is, or that it is a member of.
  std::string queue_name;
  std::string share_name;
  std::vector<Attempt> attempts;        ///< By number. Empty in lists.
  std::vector<Preemption> preemptions;  ///< Oldest first. Empty in lists.
};

enum class HistoryOrder { kNewestFirst, kOldestFirst };

/// All conditions given must hold; empty or 0 = no condition.
struct ArchiveQuery {
  std::string user;
  std::string queue_name;  ///< Queues of that name that were removed count, too.
  std::string share_name;
  std::string name_glob;  ///< Over the job's name: `*` any text, `?` one character; case matters.
  std::vector<JobState> states;
  std::vector<JobId> jobs;    ///< Any of.
  bool members = true;        ///< False: members of arrays do not count.
  JobId first;                ///< This one and later.
  JobId last;                 ///< This one and earlier.
  Time ended_from = kNoTime;  ///< Ended then or later.
  Time ended_until = kNever;  ///< Ended before then.
  JobId cursor;  ///< Only jobs after this one, in the order asked for; 0 = from the start.
  HistoryOrder order = HistoryOrder::kNewestFirst;
  std::int32_t limit = 100;  ///< 1..kMaxHistoryRows; more is cut.
};

inline constexpr std::int32_t kMaxHistoryRows = 1000;

struct EventQuery {
  EventId after;             ///< Only events after this one.
  std::vector<JobId> jobs;   ///< Any of; empty = every event.
  QueueId queue;             ///< 0 = any.
  ShareId share;             ///< 0 = any.
  std::int32_t limit = 100;  ///< 1..kMaxHistoryRows; more is cut.
};

struct EventPage {
  std::vector<Event> events;  ///< By id; without changes.
  /// Where to go on: the last event that was looked at, matching or not.
  EventId last;
  /// False: that was the last event there is. A filtered page may be short, even empty, while there
  /// is more.
  bool more = false;
};

class HistoryReader {
 public:
  virtual ~HistoryReader() = default;

  /// Spec of a live or archived job; a member of an array has the array's. kNotFound: no such job.
  virtual Result<std::string> spec(JobId job) = 0;
  /// Archived job with attempts and preemptions. kNotFound: never was, or is still in memory.
  virtual Result<ArchivedJob> archived_job(JobId job) = 0;
  virtual Result<std::vector<ArchivedJob>> archived_jobs(const ArchiveQuery& query) = 0;
  virtual Result<HistoryNames> names() = 0;

  /// kOutOfRange: events right after `query.after` are no longer kept.
  virtual Result<EventPage> events(const EventQuery& query) = 0;
  /// The oldest event kept; the next one to come when none is.
  virtual Result<EventId> first_event() = 0;
  /// The last event of those before `time`, 0 when none is: where to begin reading a job's history,
  /// with the time of its submission.
  virtual Result<EventId> last_event_before(Time time) = 0;
};

}  // namespace gpuq::store
