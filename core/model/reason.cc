#include "core/model/reason.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/model/policy.h"

namespace gpuq {

namespace {

std::string plural(std::int64_t count, const char* noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

// "2026-03-01 12:30:00 UTC"
std::string utc_text(Time time) {
  namespace chr = std::chrono;
  const auto day = chr::floor<chr::days>(time.time_since_epoch());
  const chr::year_month_day date{chr::sys_days{day}};
  const chr::hh_mm_ss clock{chr::floor<chr::seconds>(time.time_since_epoch() - day)};
  return fmt::format("{:04}-{:02}-{:02} {:02}:{:02}:{:02} UTC", int{date.year()},
                     unsigned{date.month()}, unsigned{date.day()}, clock.hours().count(),
                     clock.minutes().count(), clock.seconds().count());
}

/// Writes one reason; members are the words that several texts share.
class ReasonWriter {
 public:
  ReasonWriter(const Reason& reason, const PolicyTables& policy) : r_(reason) {
    const Unit* unit = policy.unit(reason.unit);
    unit_ = unit != nullptr ? unit->def.name : "capacity units";
  }

  [[nodiscard]] std::string text() const {
    switch (r_.code) {
      case ReasonCode::kNone:
        return "";
      case ReasonCode::kDependency:
        return fmt::format("depends on the end of {}: {}", plural(r_.jobs_in_all, "job"), jobs());
      case ReasonCode::kHeldByUser:
        return "held by its user: release it to let it start";
      case ReasonCode::kRetryBackoff:
        return fmt::format("its last attempt failed: the next one may start at {}",
                           utc_text(r_.when));
      case ReasonCode::kArrayLimit:
        return fmt::format("array {} lets {} of its members wait or run at a time: those before it",
                           r_.other.value, r_.jobs_in_all);
      case ReasonCode::kEnvironmentDisabled:
        return "the service environment is disabled: nothing starts until an operator enables it";
      case ReasonCode::kServiceEnvironmentMaxResource:
        return fmt::format(
            "never fits: needs {}, and the service environment is limited to {}; ask for less",
            amount(r_.demand), to_string(r_.limit));
      case ReasonCode::kQuotaManagementLimitExceeded:
        return quota_limit();
      case ReasonCode::kNoNodeFits:
        return no_node_fits();
      case ReasonCode::kWaitingForPreemptedCapacity:
        return preempted_capacity();
      case ReasonCode::kHeldForHead:
        return fmt::format(
            "could start, but capacity is kept for job {}, which has waited its share's "
            "head_wait_limit",
            r_.other.value);
      case ReasonCode::kProtectedByMinRuntime:
        return protected_victims();
      case ReasonCode::kShareFull:
        return share_full();
      case ReasonCode::kNotPreemptibleLimit:
        return not_preemptible();
      case ReasonCode::kNoIdleToBorrow:
        return no_idle();
      case ReasonCode::kPoolFull:
        return pool_full();
      case ReasonCode::kNodesFragmented:
        return fmt::format("quota suffices, but no set of nodes has room: {} of {} fit now",
                           r_.instances_fitting, plural(r_.instances_needed, "instance"));
      case ReasonCode::kTopology:
        return fmt::format(
            "nodes suffice, but not inside one topology domain: the best{} holds {} of {}",
            r_.domain.empty() ? "" : fmt::format(", {},", r_.domain), r_.instances_fitting,
            plural(r_.instances_needed, "instance"));
      case ReasonCode::kBehindInShare:
        return fmt::format("behind job {} of its share, which waits for the same", r_.other.value);
    }
    return "";
  }

 private:
  [[nodiscard]] std::string amount(Amount a) const {
    return fmt::format("{} {}", to_string(a), unit_);
  }

  [[nodiscard]] std::string jobs() const {
    std::string names;
    for (const JobId job : r_.jobs) {
      names += fmt::format("{}{}", names.empty() ? "" : ", ", job.value);
    }
    const std::int64_t more = r_.jobs_in_all - static_cast<std::int64_t>(r_.jobs.size());
    if (more > 0) names += fmt::format(" and {} more", more);
    return names.empty() ? "none" : names;
  }

  [[nodiscard]] std::string quota_limit() const {
    const std::string needs = fmt::format("never fits: needs {}, ", amount(r_.demand));
    switch (r_.variant) {
      case 0:
        return needs + fmt::format("and its share's limit is {}; ask for less or use another share",
                                   to_string(r_.limit));
      case 1:
        return needs + fmt::format(
                           "and its share can have {} at most: its own {} and what its "
                           "borrow limit adds",
                           to_string(r_.limit), to_string(r_.cap));
      case 4:
        return needs + fmt::format(
                           "and a not preemptible job must fit its share's own limit of {}; ask "
                           "for less or let it be preempted",
                           to_string(r_.limit));
      case 2:
        return needs + fmt::format("and all that its share owns and could borrow is {}",
                                   to_string(r_.limit));
      default:
        if (r_.cap >= kUnlimited) {
          return needs + fmt::format("and the pool never has more than {}; ask for less",
                                     to_string(std::max(r_.limit, kZero)));
        }
        return needs + fmt::format(
                           "inside its share's {}, but beside what other shares reserve the "
                           "pool never has more than {}",
                           to_string(r_.cap), to_string(r_.limit));
    }
  }

  [[nodiscard]] std::string no_node_fits() const {
    return fmt::format(
        "never fits: the known nodes, even empty, have room for {} of its {}; ask for less per "
        "instance or fewer instances",
        r_.instances_fitting, plural(r_.instances_needed, "instance"));
  }

  [[nodiscard]] std::string preempted_capacity() const {
    if (r_.victims == 0) return "its capacity is booked; waits for the rest of it to become free";
    if (r_.victims == 1 && r_.other.valid()) {
      return fmt::format("its capacity is booked; waits for job {} to stop", r_.other.value);
    }
    if (!r_.other.valid()) {
      return fmt::format("its capacity is booked; waits for {} to stop", plural(r_.victims, "job"));
    }
    return fmt::format("its capacity is booked; waits for {} to stop, job {} among them",
                       plural(r_.victims, "job"), r_.other.value);
  }

  [[nodiscard]] std::string protected_victims() const {
    return fmt::format(
        "{} could give way, but {} protected by min_runtime: the first is old enough at {}",
        plural(r_.victims, "job"), r_.victims == 1 ? "is" : "are", utc_text(r_.when));
  }

  [[nodiscard]] std::string not_preemptible() const {
    return fmt::format(
        "not preemptible jobs must fit the share's own limit: they hold {} of {} (jobs: {}), and "
        "this one needs {}",
        to_string(r_.held), amount(r_.cap), jobs(), to_string(r_.demand));
  }

  [[nodiscard]] std::string share_full() const {
    const std::string bound = r_.ceiling > r_.cap
                                  ? fmt::format("{} (its own {} and what it may borrow)",
                                                amount(r_.ceiling), to_string(r_.cap))
                                  : amount(r_.cap);
    return fmt::format("its share is full: holds {} of {}, and the job needs {}",
                       to_string(r_.held), bound, to_string(r_.demand));
  }

  [[nodiscard]] std::string no_idle() const {
    std::string text =
        fmt::format("would borrow: needs {}, its share holds {} of its own {}, and {} can be lent",
                    amount(r_.demand), to_string(r_.held), to_string(r_.cap),
                    to_string(std::max(r_.lendable, kZero)));
    text += fmt::format(" ({} free", to_string(r_.free));
    if (r_.reserved > kZero) text += fmt::format(", {} of it reserved", to_string(r_.reserved));
    return text + ")";
  }

  [[nodiscard]] std::string pool_full() const {
    std::string text = fmt::format("the pool is full: needs {}", amount(r_.demand));
    if (r_.cap > kZero && r_.cap < kUnlimited) {
      text += fmt::format(" inside its share's {}", to_string(r_.cap));
    }
    text += fmt::format(", and {} are free", to_string(std::max(r_.free, kZero)));
    if (r_.reserved > kZero) {
      text += fmt::format(", {} of them reserved by other shares", to_string(r_.reserved));
    }
    return text;
  }

  const Reason& r_;
  std::string unit_;
};

}  // namespace

const char* to_string(ReasonCode code) {
  switch (code) {
    case ReasonCode::kNone:
      return "";
    case ReasonCode::kDependency:
      return "DEPENDENCY";
    case ReasonCode::kHeldByUser:
      return "HELD_BY_USER";
    case ReasonCode::kRetryBackoff:
      return "RETRY_BACKOFF";
    case ReasonCode::kArrayLimit:
      return "ARRAY_LIMIT";
    case ReasonCode::kEnvironmentDisabled:
      return "ENVIRONMENT_DISABLED";
    case ReasonCode::kServiceEnvironmentMaxResource:
      return "MISCONFIGURATION:SERVICE_ENVIRONMENT_MAX_RESOURCE";
    case ReasonCode::kQuotaManagementLimitExceeded:
      return "MISCONFIGURATION:QUOTA_MANAGEMENT_LIMIT_EXCEEDED";
    case ReasonCode::kNoNodeFits:
      return "MISCONFIGURATION:NO_NODE_FITS";
    case ReasonCode::kWaitingForPreemptedCapacity:
      return "WAITING_FOR_PREEMPTED_CAPACITY";
    case ReasonCode::kHeldForHead:
      return "HELD_FOR_HEAD";
    case ReasonCode::kProtectedByMinRuntime:
      return "PROTECTED_BY_MIN_RUNTIME";
    case ReasonCode::kShareFull:
      return "SHARE_FULL";
    case ReasonCode::kNotPreemptibleLimit:
      return "NOT_PREEMPTIBLE_LIMIT";
    case ReasonCode::kNoIdleToBorrow:
      return "NO_IDLE_TO_BORROW";
    case ReasonCode::kPoolFull:
      return "POOL_FULL";
    case ReasonCode::kNodesFragmented:
      return "NODES_FRAGMENTED";
    case ReasonCode::kTopology:
      return "TOPOLOGY";
    case ReasonCode::kBehindInShare:
      return "BEHIND_IN_SHARE";
  }
  return "UNKNOWN";
}

std::string reason_text(const Reason& reason, const PolicyTables& policy) {
  return ReasonWriter(reason, policy).text();
}

}  // namespace gpuq
