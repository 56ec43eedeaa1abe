#pragma once
// Events: what happened, and the records that changed with it. The only way to change the state is
// to apply an event; the store's row mutations are derived from the records that events put.
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "core/base/shared_bytes.h"
#include "core/model/array.h"
#include "core/model/job.h"
#include "core/model/node.h"
#include "core/model/policy.h"

namespace gpuq {

/// Numbers are stored: never renumber, only append.
enum class EventType : std::uint8_t {
  kServerStarted = 1,
  kPolicyApplied = 2,
  kNodeRegistered = 3,
  kNodeChanged = 4,
  kJobSubmitted = 10,
  kJobUpdated = 11,
  kJobCancelRequested = 12,
  kJobRequeued = 13,
  kJobSucceeded = 14,
  kJobFailed = 15,
  kJobHeld = 16,
  kJobReleased = 17,
  kJobRunnable = 18,
  kBookingMade = 20,
  kBookingChanged = 21,
  kBookingVoided = 22,
  kAttemptScheduled = 30,
  kAttemptStarting = 31,
  kAttemptRunning = 32,
  kAttemptStopping = 33,
  kAttemptEnded = 34,
  kPreemptionStarted = 40,
  kPreemptionEnded = 41,
  kJobsArchived = 50,
  kAccessDenied = 60,
};

const char* to_string(EventType type);  ///< "JOB_SUBMITTED" ...

/// Answer to a repeated client token (scoped by user).
struct TokenRecord {
  std::string key;  ///< user + '\n' + client_token
  std::uint64_t body_hash = 0;
  Time expires{};
  std::vector<JobId> jobs;
  bool operator==(const TokenRecord&) const = default;
};

// The changes an event makes: whole records, put or dropped by key.
struct PutClass {
  JobClass record;
};
struct DropClass {
  ClassId id;
};
struct PutJob {
  Job record;
};
/// Before PutJob of the array, and before that of a member that it gives a record.
struct PutArray {
  JobArray record;
};
struct PutSpec {
  JobId id;
  SharedBytes bytes;
};  ///< Not kept in memory.
struct PutAttempt {
  Attempt record;
};
struct PutBooking {
  Booking record;
};
struct DropBooking {
  JobId job;
};
struct PutPreemption {
  Preemption record;
};
struct PutNode {
  Node record;
};
struct DropNode {
  NodeId id;
};
struct PutPolicy {
  PolicyTables tables;
};
struct PutToken {
  TokenRecord record;
};
struct DropToken {
  std::string key;
};
struct ArchiveJob {
  JobId id;
};  ///< The ended job, its attempts and preemptions leave memory.

using Change = std::variant<PutClass, DropClass, PutJob, PutArray, PutSpec, PutAttempt, PutBooking,
                            DropBooking, PutPreemption, PutNode, DropNode, PutPolicy, PutToken,
                            DropToken, ArchiveJob>;

struct Event {
  EventId id;  ///< Given by the state's counter; the watch streams' resume token.
  Time at{};
  std::int64_t wall_ms = 0;  ///< Wall clock at that time, for display only.
  EventType type = EventType::kJobSubmitted;
  std::string actor;  ///< The caller that caused it; "" = the scheduler, "agent:NODE" = an agent.
  JobId job;
  AttemptId attempt;
  QueueId queue;
  ShareId share;
  NodeId node;
  JobState job_state = JobState::kSubmitted;  ///< After the event; meaningful where `job` is set.
  std::string detail;                         ///< One sentence for people: rule, numbers, names.
  std::vector<Change> changes;                ///< Applied in order; not stored with the event.
};

}  // namespace gpuq
