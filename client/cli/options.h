#pragma once
// What a command line asks for, as plain data. Filled by parse.h, used by the commands.
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/base/time.h"

namespace gpuq::cli {

struct GlobalOptions {
  std::string server;  ///< Empty: GPUQ_SERVER, the configuration file, the default.
  bool json = false;
};

/// Options of a job, as written; what is absent is left to a lower layer (see job_options.h).
struct JobOptions {
  std::optional<std::string> name;
  std::optional<std::string> queue;
  std::optional<std::string> share;
  std::optional<std::string> priority;
  std::optional<std::string> gpus;
  std::optional<std::string> count;
  std::vector<std::string> units;
  std::optional<std::string> instances;
  std::optional<std::string> cpus;
  std::optional<std::string> memory;
  std::optional<std::string> image;
  std::optional<std::string> workdir;
  std::optional<std::string> timeout;
  std::optional<std::string> expect;
  std::optional<std::string> grace;
  std::optional<std::string> retries;
  std::optional<std::string> retry_backoff;
  std::optional<std::string> preemption_retries;
  std::optional<std::string> exit_zero_after_stop;
  std::vector<std::string> retry_on;
  std::vector<std::string> env;
  std::vector<std::string> labels;
  std::vector<std::string> after;     ///< "ok:12,any:13"
  std::vector<std::string> after_ok;  ///< "12,13"
  std::optional<std::string> array;   ///< "0-99%10"
  bool no_preempt = false;
  bool hold = false;
};

struct SubmitOptions {
  JobOptions job;
  std::optional<std::string> file;   ///< -f
  std::vector<std::string> script;   ///< SCRIPT and its arguments.
  std::vector<std::string> command;  ///< After `--`.
  std::string client_token;
  bool dry_run = false;
  bool wait = false;
  bool strict = false;
};

struct RunOptions {
  JobOptions job;
  std::vector<std::string> script;
  std::vector<std::string> command;
  bool quiet = false;
  bool strict = false;
};

struct ListOptions {
  bool everybody = false;
  bool history = false;  ///< `gpuq history`
  std::string user, queue, share, name;
  std::string array;  ///< The id of an array: its members.
  std::vector<std::string> states;
  std::vector<std::string> labels;
  std::int64_t limit = 1000;
};

struct ShowOptions {
  std::vector<std::string> jobs;
};

struct WhyOptions {
  std::vector<std::string> jobs;
};

struct LogsOptions {
  std::string job;
  bool follow = false;
  std::int64_t attempt = 0;
  std::int64_t instance = 0;
  bool only_stdout = false;
  bool only_stderr = false;
  std::string tail;  ///< An amount of memory; empty = from the beginning.
};

struct WaitOptions {
  std::vector<std::string> jobs;
  std::string timeout;
};

struct CancelOptions {
  std::vector<std::string> jobs;
  std::string reason;
  bool wait = false;
  bool yes = false;
};

struct UpdateOptions {
  std::vector<std::string> jobs;
  std::string priority;
};

struct HoldOptions {
  std::vector<std::string> jobs;
  bool release = false;
};

struct StatusOptions {
  std::string queue;
};

struct ApplyOptions {
  std::string file;
  bool dry_run = false;
  bool prune = false;
  bool drain = false;
};

struct NodeOptions {
  enum class Verb { kList, kShow, kCordon, kUncordon, kDrain };
  Verb verb = Verb::kList;
  std::vector<std::string> nodes;
  std::string reason;
  std::string environment;
};

struct SimulateOptions {
  std::vector<std::string> files;
  std::string trace;    ///< A table of jobs to add; "" = none.
  std::string compare;  ///< A policy or scenario file; "" = none.
  std::string plot;     ///< Where to write a picture; "" = nowhere.
};

struct VersionOptions {};

using Command =
    std::variant<SubmitOptions, RunOptions, ListOptions, ShowOptions, WhyOptions, LogsOptions,
                 WaitOptions, CancelOptions, UpdateOptions, HoldOptions, StatusOptions,
                 ApplyOptions, NodeOptions, SimulateOptions, VersionOptions>;

}  // namespace gpuq::cli
