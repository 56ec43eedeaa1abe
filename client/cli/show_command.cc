#include <ostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/format.h"
#include "client/cli/selector.h"
#include "common/runtime/clocks.h"

namespace gpuq::cli {

namespace {

/// "Label:    value" lines; empty values are left out.
class Sheet {
 public:
  explicit Sheet(const Terminal& terminal) : terminal_(terminal) {}
  void line(const std::string& label, const std::string& value) {
    if (value.empty()) return;
    const std::string head = label + ":";
    terminal_.out << head << std::string(head.size() < 14 ? 14 - head.size() : 1, ' ')
                  << one_line(value) << '\n';
  }

 private:
  const Terminal& terminal_;
};

std::string at(std::int64_t at_ms, std::int64_t now_ms) {
  if (at_ms == 0) return "";
  return format_rfc3339(at_ms) + " (" + format_ago(at_ms, now_ms) + ")";
}

std::string request_text(const v1::ResourceRequest& r) {
  std::string unit;
  for (const auto& name : r.capacity_units()) unit += (unit.empty() ? "" : " or ") + name;
  const std::int32_t instances = r.has_instances() ? r.instances() : 1;
  const std::int64_t count = r.has_gpus_milli()    ? r.gpus_milli()
                             : r.has_count_milli() ? r.count_milli()
                                                   : 1000;
  std::string text = format_request(instances, count, r.has_gpus_milli() ? "GPU" : unit);
  if (r.cpus() > 0) text += ", " + std::to_string(r.cpus()) + " CPUs";
  if (r.memory_mib() > 0) text += ", " + format_memory(r.memory_mib());
  return text + (instances > 1 ? " (instances x units)" : "");
}

std::string exit_text(const v1::Attempt& attempt) {
  if (!attempt.has_exit_code()) return "";
  const std::int32_t code = attempt.exit_code();
  if (code > 128 && code < 193) return "signal " + std::to_string(code - 128);
  return std::to_string(code);
}

void print_attempts(const Context& context, const v1::Job& job, std::int64_t now_ms) {
  if (job.attempts().empty()) return;
  using Align = Table::Align;
  Table table({{"ATTEMPT", Align::kRight},
               {"STATE"},
               {"STARTED"},
               {"RAN", Align::kRight},
               {"EXIT"},
               {"NODES"},
               {"REASON"}});
  for (const auto& attempt : job.attempts()) {
    google::protobuf::RepeatedPtrField<std::string> nodes;
    for (const auto& instance : attempt.instances()) *nodes.Add() = instance.node_name();
    const std::int64_t end = attempt.stopped_at_ms() != 0 ? attempt.stopped_at_ms() : now_ms;
    const std::string ran =
        attempt.started_at_ms() == 0 ? "" : format_duration(end - attempt.started_at_ms());
    table.add({std::to_string(attempt.number()),
               format_state(attempt.state()) + (attempt.borrowing() ? " (borrowing)" : ""),
               format_rfc3339(attempt.started_at_ms()), ran, exit_text(attempt),
               format_nodes(nodes), attempt.status_reason()});
  }
  context.terminal().out << '\n';
  table.print(context.terminal());
}

void print_preemptions(const Context& context, const v1::Job& job) {
  const auto& summary = job.preemption_summary();
  if (summary.recent_preempted_attempts().empty()) return;
  Table table({{"PREEMPTED", Table::Align::kRight}, {"RULE"}, {"FOR JOB"}, {"AT"}, {"LOST"}});
  for (const auto& one : summary.recent_preempted_attempts()) {
    table.add({std::to_string(one.attempt()),
               one.rule() == v1::PREEMPTION_RULE_CROSS_SHARE ? "CROSS_SHARE" : "IN_SHARE",
               std::to_string(one.preempted_by_job_id()) +
                   (one.preempted_by_share().empty() ? "" : " (" + one.preempted_by_share() + ")"),
               format_rfc3339(one.decided_at_ms()), format_duration(one.lost_work_ms())});
  }
  context.terminal().out << '\n';
  table.print(context.terminal());
}

std::string booking_text(const v1::Booking& booking) {
  std::string text = format_milli(booking.free_milli()) + " free and " +
                     format_milli(booking.awaited_milli()) + " awaited " + booking.capacity_unit();
  if (booking.victim_job_ids().empty()) return text;
  text += " from jobs";
  for (const auto id : booking.victim_job_ids()) text += " " + std::to_string(id);
  return text;
}

std::string dependencies_text(const v1::JobSpec& spec) {
  std::string text;
  for (const auto& on : spec.depends_on()) {
    const bool failed = on.condition() == v1::DEPENDENCY_CONDITION_FAILED;
    const bool ended = on.condition() == v1::DEPENDENCY_CONDITION_ENDED;
    text += (text.empty() ? "" : ", ") + std::to_string(on.job_id()) +
            (on.has_array_index() ? "." + std::to_string(on.array_index()) : "") +
            (failed  ? " FAILED"
             : ended ? " ENDED"
                     : " SUCCEEDED");
  }
  return text;
}

void print_job(const Context& context, const v1::Job& job) {
  const std::int64_t now_ms = wall_now_ms();
  const auto& spec = job.spec();
  Sheet sheet(context.terminal());
  sheet.line("Job", format_id(job) + "  " + spec.job_name());
  if (job.has_member_of()) sheet.line("Number", std::to_string(job.job_id()));
  if (job.has_array()) sheet.line("Members", format_array(job.array()));
  sheet.line("UUID", job.job_uuid());
  sheet.line("State", format_state(job.state()) + (job.is_terminated() ? " (cancelled)" : ""));
  sheet.line("Status", job.status_reason());
  if (!job.reason().code().empty()) {
    sheet.line("Waits for", job.reason().code() + ": " + job.reason().message());
  }
  if (job.has_booking()) sheet.line("Booked", booking_text(job.booking()));
  if (job.has_final_exit_code()) sheet.line("Exit code", std::to_string(job.final_exit_code()));
  sheet.line("User", job.user());
  sheet.line("Queue", spec.job_queue() + "/" + spec.quota_share_name());
  sheet.line("Priority", std::to_string(spec.scheduling_priority()));
  sheet.line("Asks for", request_text(spec.resources()));
  sheet.line("Depends on", dependencies_text(spec));
  sheet.line("Command", cut_text(format_command(spec.command()), 2000));
  sheet.line("Directory", spec.workdir());
  sheet.line("Image", spec.image());
  if (spec.has_attempt_duration_seconds()) {
    sheet.line("Time limit", format_duration(spec.attempt_duration_seconds() * 1000));
  }
  if (spec.has_expected_run_seconds()) {
    sheet.line("Expected", format_duration(spec.expected_run_seconds() * 1000) + " to run");
  }
  std::string labels;
  for (const auto& [key, value] : spec.labels()) labels += key + "=" + value + " ";
  sheet.line("Labels", labels);
  sheet.line("Submitted", at(job.created_at_ms(), now_ms));
  sheet.line("Started", at(job.started_at_ms(), now_ms));
  sheet.line("Ended", at(job.stopped_at_ms(), now_ms));
  print_attempts(context, job, now_ms);
  print_preemptions(context, job);
}

}  // namespace

int show(Context& context, const ShowOptions& options) {
  if (auto done = check_selectors(options.jobs); !done) return context.fail(done.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  bool first = true;
  for (const auto& word : options.jobs) {
    const auto selector = parse_selector(word);
    if (!selector) return context.fail(selector.error());
    const std::string whole = selector->attempt == 0 ? word : word.substr(0, word.find('#'));
    auto ids = select_jobs(**client, {whole}, SelectScope::kAll);
    if (!ids) return context.fail(ids.error());
    for (const auto id : *ids) {
      v1::GetJobRequest request;
      request.set_job_id(id);
      auto job = (*client)->get_job(request);
      if (!job) return context.fail(job.error());
      if (auto done = check_attempt(*job, selector->attempt); !done) {
        return context.fail(done.error());
      }
      if (context.json()) {
        context.print_json(*job);
        continue;
      }
      if (!first) context.terminal().out << '\n';
      first = false;
      print_job(context, *job);
    }
  }
  return kDone;
}

}  // namespace gpuq::cli
