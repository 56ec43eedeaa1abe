#include <algorithm>
#include <ostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/forecast_text.h"
#include "client/cli/format.h"
#include "client/cli/selector.h"
#include "common/runtime/clocks.h"

namespace gpuq::cli {

namespace {

bool never_fits(const v1::ExplainResponse& why) {
  return why.reason().code().rfind("MISCONFIGURATION", 0) == 0;
}

void print_numbers(std::ostream& out, const v1::ExplainResponse& why) {
  if (why.capacity_unit().empty()) return;
  out << "  share " << why.job().quota_share_name() << ": needs "
      << format_milli(why.demand_milli()) << " " << why.capacity_unit() << ", holds "
      << format_milli(why.held_milli()) << " of " << format_milli(why.cap_milli());
  if (why.ceiling_milli() < 0) {
    out << ", may borrow without bound";
  } else if (why.ceiling_milli() > why.cap_milli()) {
    out << ", may borrow up to " << format_milli(why.ceiling_milli());
  }
  out << "\n  pool: " << format_milli(why.free_milli()) << " free, "
      << format_milli(why.reserved_milli()) << " of them reserved, "
      << format_milli(why.lendable_milli()) << " to borrow\n";
}

void print_holders(const Terminal& terminal, const v1::ExplainResponse& why) {
  if (why.holders().empty()) return;
  Table table(
      {{"  HELD BY", Table::Align::kRight}, {"NAME"}, {"SHARE"}, {"HOLDS"}, {"PRIO"}, {""}});
  for (const auto& holder : why.holders()) {
    std::string note;
    if (holder.stopping()) note = "stopping";
    if (holder.borrowing()) note += note.empty() ? "borrowing" : ", borrowing";
    if (holder.expected_end_ms() != 0) {
      note += (note.empty() ? "" : ", ") +
              ("expected to end " + format_rfc3339(holder.expected_end_ms()));
    }
    if (holder.ends_by_ms() != 0) {
      note += (note.empty() ? "" : ", ") + ("ends by " + format_rfc3339(holder.ends_by_ms()));
    }
    table.add({std::to_string(holder.job_id()), holder.job_name(), holder.quota_share_name(),
               format_milli(holder.held_milli()), std::to_string(holder.scheduling_priority()),
               note});
  }
  table.print(terminal);
}

void print_why(const Context& context, const v1::ExplainResponse& why) {
  std::ostream& out = context.terminal().out;
  const auto& job = why.job();
  out << "Job " << format_id(job) << " (" << one_line(job.job_name()) << ") is "
      << format_state(job.state());
  if (job.has_array()) out << ", " << format_array(job.array());
  // Some members of an array may wait beside others that run.
  if (!is_waiting(job.state()) && why.reason().code().empty()) {
    out << (job.status_reason().empty() ? "" : ": " + one_line(job.status_reason()))
        << "; it does not wait.\n";
    return;
  }
  const std::int64_t since = why.reason().since_ms();
  if (since != 0) out << ", for this reason since " << format_ago(since, wall_now_ms());
  out << ".\n  " << (why.reason().code().empty() ? "not considered yet" : why.reason().code());
  if (!why.reason().message().empty()) out << ": " << one_line(why.reason().message());
  out << '\n';
  if (why.jobs_ahead() > 0) out << "  jobs of its share before it: " << why.jobs_ahead() << '\n';
  print_numbers(out, why);
  print_holders(context.terminal(), why);
  for (const auto& way : why.would_start()) out << "  it would start if: " << one_line(way) << '\n';
  print_forecast(out, why.forecast(), wall_now_ms());
}

}  // namespace

int why(Context& context, const WhyOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto ids = select_jobs(**client, options.jobs, SelectScope::kAll);
  if (!ids) return context.fail(ids.error());
  int code = kDone;
  for (const auto id : *ids) {
    v1::ExplainRequest request;
    request.set_job_id(id);
    request.set_forecast(true);
    auto answer = (*client)->explain(request);
    if (!answer) return context.fail(answer.error());
    if (never_fits(*answer)) code = kNeverFits;
    if (context.json()) {
      context.print_json(*answer);
    } else {
      print_why(context, *answer);
    }
  }
  return code;
}

}  // namespace gpuq::cli
