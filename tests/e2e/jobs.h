#pragma once
// Scripts and policies that the tests share. Jobs write what they do into files of their working
// directory, which is the cluster's work folder.
#include <string>

namespace gpuq::e2e {

/// Runs until stopped; gives way politely, with exit code 0. Lines of `marks`: "NAME up", "NAME
/// saved".
inline const char* const kPolite =
    "trap 'echo $GPUQ_JOB_NAME saved >> marks; exit 0' TERM; echo $GPUQ_JOB_NAME up >> marks; "
    "sleep 1000 & wait $!";

/// Runs until killed: SIGTERM is ignored.
inline const char* const kStubborn =
    "trap '' TERM; echo $GPUQ_JOB_NAME up >> marks; exec sleep 1000";

/// Runs until the gate opens, whatever signal comes; then ends with `code`.
inline std::string stubborn_until(const std::string& gate, int code = 0) {
  return "trap '' TERM; echo $GPUQ_JOB_NAME up >> marks; read x < " + gate +
         "; echo $GPUQ_JOB_NAME done >> marks; exit " + std::to_string(code);
}

/// The same, but gives way politely.
inline std::string polite_until(const std::string& gate, int code = 0) {
  return "trap 'echo $GPUQ_JOB_NAME saved >> marks; exit 0' TERM; "
         "echo $GPUQ_JOB_NAME up >> marks; cat " +
         gate + " > gone & wait $!; echo $GPUQ_JOB_NAME done >> marks; exit " +
         std::to_string(code);
}

/// One queue `q` with one share `team` that owns `gpus` A10G; higher priorities preempt.
inline std::string one_share_policy(int gpus) {
  const std::string n = std::to_string(gpus);
  return "capacity_units:\n"
         "  - {name: gpu, gpu_model: A10G, gpus: 1}\n"
         "service_environments:\n"
         "  - {name: pool, capacity_limits: {gpu: " +
         n +
         "}}\n"
         "scheduling_policies:\n"
         "  - {name: quotas, quota_share: {idle_resource_assignment: FIFO}}\n"
         "job_queues:\n"
         "  - name: q\n"
         "    service_environments: [pool]\n"
         "    scheduling_policy: quotas\n"
         "    quota_shares:\n"
         "      - name: team\n"
         "        capacity_limits: {gpu: " +
         n +
         "}\n"
         "        resource_sharing: {strategy: RESERVE}\n"
         "        preemption: {in_share: ENABLED}\n";
}

}  // namespace gpuq::e2e
