#include "client/cli/job_file_spec.h"

#include "client/cli/job_options.h"
#include "client/cli/selector.h"

namespace gpuq::cli {

namespace {

void set_resources(const JobFile& job, v1::ResourceRequest& resources) {
  for (const auto& unit : job.units) resources.add_capacity_units(unit);
  if (job.count) resources.set_count_milli(job.count->milli);
  if (job.gpus) resources.set_gpus_milli(job.gpus->milli);
  if (job.instances) resources.set_instances(*job.instances);
  resources.set_cpus(job.cpus.value_or(0));
  resources.set_memory_mib(job.memory_mib.value_or(0));
  resources.set_topology_label(job.topology_label.value_or(""));
  resources.set_topology_required(job.topology_required);
}

void set_retry(const JobFile& job, v1::JobSpec& spec) {
  if (!job.attempts && !job.backoff && job.exit_rules.empty()) return;
  auto& retry = *spec.mutable_retry_strategy();
  if (job.attempts) retry.set_attempts(*job.attempts);
  if (job.backoff) retry.set_backoff_ms(job.backoff->count());
  for (const auto& from : job.exit_rules) {
    auto* rule = retry.add_evaluate_on_exit();
    rule->set_on_status_reason(from.on_status_reason);
    rule->set_on_exit_code(from.on_exit_code);
    rule->set_action(from.action == RetryAction::kExit ? v1::RETRY_ACTION_EXIT
                                                       : v1::RETRY_ACTION_RETRY);
  }
}

void set_ends(const JobFile& job, v1::JobSpec& spec) {
  if (job.timeout) spec.set_attempt_duration_seconds((job.timeout->count() + 999) / 1000);
  if (job.expected_run_time) {
    spec.set_expected_run_seconds((job.expected_run_time->count() + 999) / 1000);
  }
  if (job.exit_zero_after_stop_succeeds) {
    spec.set_exit_zero_after_stop(*job.exit_zero_after_stop_succeeds
                                      ? v1::EXIT_ZERO_AFTER_STOP_SUCCEEDED
                                      : v1::EXIT_ZERO_AFTER_STOP_PREEMPTED);
  }
  auto& preemption = *spec.mutable_preemption_configuration();
  if (job.preemptible) preemption.set_preemptible(*job.preemptible);
  if (job.grace) preemption.set_grace_ms(job.grace->count());
  if (job.preemption_retries) {
    preemption.set_preemption_retries_before_termination(*job.preemption_retries);
  }
}

v1::DependencyCondition condition_of(DependencyCondition condition) {
  switch (condition) {
    case DependencyCondition::kSucceeded:
      return v1::DEPENDENCY_CONDITION_SUCCEEDED;
    case DependencyCondition::kFailed:
      return v1::DEPENDENCY_CONDITION_FAILED;
    case DependencyCondition::kEnded:
      return v1::DEPENDENCY_CONDITION_ENDED;
  }
  return v1::DEPENDENCY_CONDITION_UNSPECIFIED;
}

}  // namespace

Result<JobFileSpec> read_job_file(const std::string& path) {
  auto job = parse_job_file(path);
  if (!job) return job.error();
  JobFileSpec result;
  result.depends_on = job->depends_on;
  v1::JobSpec& spec = result.spec;
  spec.set_job_name(job->name.value_or(""));
  spec.set_job_queue(job->queue.value_or(""));
  spec.set_quota_share_name(job->share.value_or(""));
  spec.set_scheduling_priority(job->priority.value_or(0));
  spec.set_image(job->image.value_or(""));
  spec.set_workdir(job->workdir.value_or(""));
  spec.set_hold(job->hold);
  if (job->array) set_array(*job->array, spec);
  for (const auto& word : job->command) spec.add_command(word);
  spec.mutable_env()->insert(job->env.begin(), job->env.end());
  spec.mutable_labels()->insert(job->labels.begin(), job->labels.end());
  set_resources(*job, *spec.mutable_resources());
  set_retry(*job, spec);
  set_ends(*job, spec);
  return result;
}

Result<> resolve_dependencies(client::Client& client, const std::vector<JobDependency>& depends_on,
                              v1::JobSpec& spec) {
  for (const JobDependency& from : depends_on) {
    const std::string word = parse_selector(from.job) ? from.job : "name:" + from.job;
    auto found = select_job(client, word);
    if (!found) {
      return Error{found.error().code, "depends_on: " + found.error().message};
    }
    if (found->attempt != 0) {
      return Error{ErrorCode::kInvalidArgument, "depends_on: '" + from.job +
                                                    "' names an attempt: a job depends on whole "
                                                    "jobs"};
    }
    auto* on = spec.add_depends_on();
    on->set_job_id(found->job.job_id());
    on->set_condition(condition_of(from.condition));
  }
  return {};
}

}  // namespace gpuq::cli
