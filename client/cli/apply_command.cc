#include <algorithm>
#include <ostream>
#include <string>

#include "client/cli/commands.h"
#include "client/cli/policy_message.h"
#include "common/policy/policy_file.h"

namespace gpuq::cli {

namespace {

std::string place(const ParsedPolicy& policy, const v1::PolicyFinding& finding, bool is_error,
                  const std::string& file) {
  return to_string(policy.locate(PolicyIssue{is_error, finding.path(), finding.message()}), file);
}

std::string kind_text(v1::PolicyKind kind) {
  switch (kind) {
    case v1::POLICY_KIND_CAPACITY_UNIT:
      return "capacity unit";
    case v1::POLICY_KIND_SERVICE_ENVIRONMENT:
      return "service environment";
    case v1::POLICY_KIND_SCHEDULING_POLICY:
      return "scheduling policy";
    case v1::POLICY_KIND_JOB_QUEUE:
      return "job queue";
    case v1::POLICY_KIND_QUOTA_SHARE:
      return "quota share";
    default:
      return "object";
  }
}

std::string change_text(const v1::PolicyChange& change) {
  if (!change.summary().empty()) return one_line(change.summary());
  const auto& ref = change.ref();
  std::string text = kind_text(ref.kind()) + " ";
  if (!ref.job_queue().empty()) text += ref.job_queue() + "/";
  text += ref.name();
  for (const auto& field : change.fields()) {
    text += "; " + field.field() + " " + (field.old_value().empty() ? "-" : field.old_value()) +
            " -> " + (field.new_value().empty() ? "-" : field.new_value());
  }
  return text;
}

std::pair<const char*, Colour> mark_of(v1::PolicyAction action) {
  switch (action) {
    case v1::POLICY_ACTION_CREATE:
      return {"+", Colour::kGreen};
    case v1::POLICY_ACTION_DELETE:
      return {"-", Colour::kRed};
    case v1::POLICY_ACTION_DISABLE:
      return {"!", Colour::kYellow};
    default:
      return {"~", Colour::kYellow};
  }
}

const char* fate_text(v1::JobFate fate) {
  switch (fate) {
    case v1::JOB_FATE_STOPPED:
      return "would be stopped";
    case v1::JOB_FATE_ENDED:
      return "would be ended";
    case v1::JOB_FATE_STRANDED:
      return "could never start any more";
    default:
      return "would be affected";
  }
}

void print_preview(const Context& context, const v1::PolicyPreview& preview) {
  std::ostream& out = context.terminal().out;
  for (const auto& job : preview.jobs()) {
    out << "job " << job.job_id() << " (" << one_line(job.job_name()) << ", share "
        << job.quota_share_name() << ") " << fate_text(job.fate());
    if (!job.reason().empty()) out << ": " << one_line(job.reason());
    out << '\n';
  }
  const std::int64_t more = preview.jobs_in_all() - preview.jobs_size();
  if (more > 0) out << "and " << more << " more jobs\n";
  if (preview.cut()) out << "there may be more: that would take too long to work out\n";
  if (preview.jobs_left_out() > 0) {
    out << "not looked at: " << preview.jobs_left_out() << " waiting jobs\n";
  }
  if (!preview.message().empty()) {
    out << "which jobs it would hit is not known: " << one_line(preview.message()) << '\n';
  } else if (preview.jobs().empty() && !preview.cut()) {
    out << "no job would be stopped, ended or stranded by it at once\n";
  }
}

void print_changes(const Context& context, const v1::ApplyPolicyResponse& response, bool dry_run) {
  std::ostream& out = context.terminal().out;
  int waiting = 0;
  for (const auto& change : response.changes()) {
    const auto [mark, colour] = mark_of(change.action());
    out << paint(context.terminal(), colour, mark) << ' ' << change_text(change);
    if (change.affected_jobs() > 0) out << " (" << change.affected_jobs() << " jobs)";
    if (change.needs_prune()) out << " [needs --prune]";
    out << '\n';
    waiting += change.needs_prune() ? 1 : 0;
  }
  const int done = response.changes_size() - waiting;
  if (response.changes().empty()) {
    out << "no change\n";
  } else {
    out << done << (done == 1 ? " change" : " changes")
        << (dry_run              ? " would be made"
            : response.applied() ? " made"
                                 : " not made")
        << '\n';
  }
  if (waiting > 0) out << waiting << " left out; they need --prune\n";
}

}  // namespace

int apply(Context& context, const ApplyOptions& options) {
  auto policy = parse_policy_file(options.file);
  if (!policy) return context.fail_each(policy.error());
  for (const auto& issue : policy->issues) context.note(to_string(issue, options.file));
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::ApplyPolicyRequest request;
  *request.mutable_document() = to_message(policy->doc);
  request.set_dry_run(options.dry_run);
  request.set_prune(options.prune);
  request.set_drain(options.drain);
  auto response = (*client)->apply(request);
  if (!response) return context.fail(response.error());
  if (context.json()) context.print_json(*response);
  for (const auto& finding : response->warnings()) {
    context.note(place(*policy, finding, false, options.file));
  }
  for (const auto& finding : response->errors()) {
    context.note(place(*policy, finding, true, options.file));
  }
  if (!response->errors().empty()) return kRefused;
  if (!context.json()) {
    print_changes(context, *response, options.dry_run);
    if (response->has_preview()) print_preview(context, response->preview());
  }
  return kDone;
}

}  // namespace gpuq::cli
