#include "client/cli/parse.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <CLI/CLI.hpp>

#include "client/cli/parse_job.h"
#include "common/runtime/defaults.h"

namespace gpuq::cli {

namespace {

/// Everything that the parser writes to while it runs.
struct Storage {
  GlobalOptions global;
  SubmitOptions submit;
  RunOptions run;
  ListOptions list, history;
  ShowOptions show;
  WhyOptions why;
  LogsOptions logs;
  WaitOptions wait;
  CancelOptions cancel;
  UpdateOptions update;
  HoldOptions hold, release;
  StatusOptions status;
  ApplyOptions apply;
  NodeOptions node;
  SimulateOptions simulate;
};

constexpr const char* kSelectors =
    "JOB is an id (17), a member of an array (17.3, 17.3-9), a range (1-10), last, name:GLOB\n"
    "or a UUID.\n";

std::string example(const std::string& lines) { return "Example:\n" + lines; }

/// Before or after the command, as people happen to write them.
void add_globals(CLI::App& app, Storage& s) {
  app.add_option("--server", s.global.server, "Server: HOST[:PORT] or unix:/PATH")
      ->type_name("ADDRESS");
  app.add_flag("--json", s.global.json, "JSON, one object a line for lists");
}

CLI::App* command(CLI::App& app, Storage& s, const char* name, const char* help,
                  const std::string& footer) {
  CLI::App* sub = app.add_subcommand(name, help);
  sub->footer(footer);
  add_globals(*sub, s);
  return sub;
}

CLI::Option* jobs_argument(CLI::App* sub, std::vector<std::string>& jobs) {
  return sub->add_option("JOB", jobs, "Jobs")->required()->type_name("");
}

void add_submit(CLI::App& app, Storage& s) {
  CLI::App* sub = command(
      app, s, "submit", "Submit a job; prints its id",
      "`gpuq submit [OPTIONS] -- CMD...`, `gpuq submit [OPTIONS] SCRIPT [ARG...]`, or\n"
      "`gpuq submit [OPTIONS] -f JOB.yaml`. Lines `#GPUQ OPTIONS` at the top of a script are "
      "options,\n"
      "the common `#SBATCH` lines are understood; the command line goes first.\n\n" +
          example("  gpuq submit --gpus 8 --instances 4 --share research -- torchrun train.py\n"
                  "  gpuq submit --dry-run --gpus 8 --expect 2h -- ./train.sh"));
  add_job_options(*sub, s.submit.job);
  // Not into the optional itself: the parser would take an empty name for none.
  sub->add_option_function<std::string>(
         "--file,-f", [&s](const std::string& name) { s.submit.file = name; }, "Job file (YAML)")
      ->type_name("JOB.yaml");
  CLI::Option* wait =
      sub->add_flag("--wait", s.submit.wait, "Wait for its end; exit with its code");
  sub->add_flag("--dry-run", s.submit.dry_run,
                "Say whether and when it could start; submit nothing")
      ->excludes(wait);
  sub->add_flag("--strict", s.submit.strict, "A script line that is not understood is an error");
  sub->add_option("--client-token", s.submit.client_token,
                  "The same token again gives the first job instead of a second one")
      ->type_name("TOKEN");
  sub->prefix_command();
}

void add_run(CLI::App& app, Storage& s) {
  CLI::App* sub =
      command(app, s, "run", "Submit, follow the output, exit with the job's code",
              "`gpuq run [OPTIONS] -- CMD...` or `gpuq run [OPTIONS] SCRIPT [ARG...]`.\n"
              "Ctrl-C cancels the job; a second one leaves it alone and returns at once.\n\n" +
                  example("  gpuq run --gpus 1 -- nvidia-smi"));
  add_job_options(*sub, s.run.job);
  sub->add_flag("--quiet", s.run.quiet, "Only the job's own output");
  sub->add_flag("--strict", s.run.strict, "A script line that is not understood is an error");
  sub->prefix_command();
}

void add_filters(CLI::App* sub, ListOptions& o) {
  sub->add_flag("-a,--all", o.everybody, "Everybody's jobs");
  sub->add_option("--user", o.user, "Of this user")->type_name("USER");
  sub->add_option("--queue,-q", o.queue, "In this queue")->type_name("QUEUE");
  sub->add_option("--share,-s", o.share, "In this share")->type_name("SHARE");
  sub->add_option("--name,-n", o.name, "With a name like this")->type_name("GLOB");
  sub->add_option("--label,-l", o.labels, "With this label")
      ->type_name("KEY=VALUE")
      ->allow_extra_args(false);
  sub->add_option("--limit", o.limit, "At most so many, 1..100000 (default 1000)")
      ->type_name("N")
      ->check(CLI::Range(1, 100000));
}

void add_lists(CLI::App& app, Storage& s) {
  CLI::App* ls = command(app, s, "ls", "What waits and runs, and why it waits",
                         "Without -a or a filter by user: your own jobs.\n\n" +
                             example("  gpuq ls -a --share research --state RUNNABLE"));
  add_filters(ls, s.list);
  ls->add_option("--state", s.list.states, "In this state, ended ones too (may be repeated)")
      ->type_name("STATE")
      ->allow_extra_args(false);
  ls->add_option("--array", s.list.array, "The members of this array, ended ones too")
      ->type_name("JOB");
  CLI::App* history = command(app, s, "history", "What has ended, the newest first",
                              example("  gpuq history -a --limit 20"));
  add_filters(history, s.history);
  s.history.history = true;
}

void add_looks(CLI::App& app, Storage& s) {
  CLI::App* show = command(app, s, "show", "One job whole, with its attempts",
                           kSelectors + ("\n" + example("  gpuq show last")));
  jobs_argument(show, s.show.jobs);
  CLI::App* why = command(app, s, "why", "Why a job waits, what would start it, and when it should",
                          std::string("When: as things are now, with what jobs said of themselves "
                                      "(--expect, --timeout).\n"
                                      "Exit status 5 if it can never be placed.\n") +
                              kSelectors + "\n" + example("  gpuq why 17"));
  jobs_argument(why, s.why.jobs);
  CLI::App* logs =
      command(app, s, "logs", "Output of a job",
              "Works before the start (with -f) and after the end. 17#2 is the second\n"
              "attempt of job 17.\n\n" +
                  example("  gpuq logs -f last"));
  logs->add_option("JOB", s.logs.job, "Job, or attempt as JOB#N")->required()->type_name("");
  logs->add_flag("-f,--follow", s.logs.follow, "Go on until the job has ended");
  logs->add_option("--attempt", s.logs.attempt, "Attempt, from 1 (default: the latest)")
      ->type_name("N")
      ->check(CLI::Range(1, 1000000000));
  logs->add_option("--instance", s.logs.instance, "Instance, from 0 (default 0)")
      ->type_name("N")
      ->check(CLI::Range(0, 100000));
  CLI::Option* out = logs->add_flag("--stdout", s.logs.only_stdout, "Only standard output");
  logs->add_flag("--stderr", s.logs.only_stderr, "Only standard error")->excludes(out);
  logs->add_option("--tail", s.logs.tail, "Only the last part: 16K, 1M")->type_name("SIZE");
}

void add_deeds(CLI::App& app, Storage& s) {
  CLI::App* wait = command(app, s, "wait", "Wait until jobs have ended; exit with the highest code",
                           kSelectors + ("\n" + example("  gpuq wait --timeout 2h 17 18")));
  jobs_argument(wait, s.wait.jobs);
  wait->add_option("--timeout,-t", s.wait.timeout, "Give up after this time, with status 7")
      ->type_name("TIME");
  CLI::App* cancel = command(app, s, "cancel", "End jobs for good",
                             kSelectors + ("\n" + example("  gpuq cancel --wait name:sweep*")));
  jobs_argument(cancel, s.cancel.jobs);
  cancel->add_option("--reason", s.cancel.reason, "Shown with the job")->type_name("TEXT");
  cancel->add_flag("--wait", s.cancel.wait, "Return when they have ended and their GPUs are free");
  cancel->add_flag("-y,--yes", s.cancel.yes, "Do not ask");
  CLI::App* update = command(app, s, "update", "Change a job that has not ended",
                             kSelectors + ("\n" + example("  gpuq update 17 --priority 50")));
  jobs_argument(update, s.update.jobs);
  update->add_option("--priority,-p", s.update.priority, "0..9999, higher first")
      ->required()
      ->type_name("N");
  CLI::App* hold =
      command(app, s, "hold", "Keep waiting jobs from starting until they are released",
              kSelectors + ("\n" + example("  gpuq hold name:sweep*")));
  jobs_argument(hold, s.hold.jobs);
  CLI::App* release = command(app, s, "release", "Let held jobs start; they keep their age",
                              kSelectors + ("\n" + example("  gpuq release 17 18")));
  jobs_argument(release, s.release.jobs);
  s.release.release = true;
}

void add_administration(CLI::App& app, Storage& s) {
  CLI::App* status =
      command(app, s, "status", "The pool at a glance", example("  gpuq status --queue training"));
  status->add_option("--queue,-q", s.status.queue, "Only this queue")->type_name("QUEUE");
  CLI::App* apply =
      command(app, s, "apply", "Make the policy equal to a file",
              "Nothing changes unless all of it can be applied. What the file leaves\n"
              "out is listed, and deleted only with --prune.\n\n" +
                  example("  gpuq apply -f policy.yaml --dry-run"));
  apply->add_option("--file,-f", s.apply.file, "Policy file (YAML)")
      ->required()
      ->type_name("POLICY.yaml");
  apply->add_flag("--dry-run", s.apply.dry_run,
                  "Say what would change and which jobs it would stop; change nothing");
  apply->add_flag("--prune", s.apply.prune, "Delete what the file leaves out");
  apply->add_flag("--drain", s.apply.drain,
                  "Stop jobs that a lowered limit leaves above it, not only when others need room");
  CLI::App* simulate = command(
      app, s, "simulate", "Run scenario files in virtual time and check what they expect",
      "Needs no server. Exit status 1: an expectation does not hold; 2: a file is wrong;\n"
      "3: a file is not there. The columns of a table are submit_s (required), job, queue,\n"
      "share, unit, gpus, instances, priority, cpus, runtime_s, timeout_s, expected_s, grace_s,\n"
      "checkpoint_s, start_delay_s and preemptible.\n\n" +
          example("  gpuq simulate tests/scenario/*.yaml\n"
                  "  gpuq simulate cluster.yaml --trace june.csv --compare new-policy.yaml"));
  simulate->add_option("FILE", s.simulate.files, "Scenario files")->required()->type_name("");
  simulate->add_option("--trace", s.simulate.trace, "Add the jobs of a table (CSV) to the scenario")
      ->type_name("FILE");
  simulate
      ->add_option("--compare", s.simulate.compare,
                   "Run the same jobs under the policy of this policy or scenario file too")
      ->type_name("FILE");
  simulate
      ->add_option("--plot", s.simulate.plot,
                   "Write a picture (SVG): use by share over time, and waiting jobs")
      ->type_name("FILE");
  command(app, s, "version", "Versions of this program and of the server",
          example("  gpuq version --json"));
}

void add_node_verb(CLI::App& node, Storage& s, NodeOptions::Verb verb, const char* name,
                   const char* help, const std::string& footer) {
  CLI::App* sub = command(node, s, name, help, footer);
  if (verb == NodeOptions::Verb::kList) {
    sub->add_option("--environment", s.node.environment, "Only of this service environment")
        ->type_name("NAME");
  } else {
    sub->add_option("NODE", s.node.nodes, "Nodes")->required()->type_name("");
  }
  if (verb == NodeOptions::Verb::kCordon || verb == NodeOptions::Verb::kDrain) {
    sub->add_option("--reason", s.node.reason, "Shown beside the node")->type_name("TEXT");
  }
  sub->callback([&s, verb] { s.node.verb = verb; });
}

void add_node(CLI::App& app, Storage& s) {
  using Verb = NodeOptions::Verb;
  CLI::App* node = app.add_subcommand("node", "Nodes: ls, show, cordon, uncordon, drain");
  node->require_subcommand(1);
  add_globals(*node, s);
  node->footer(example("  gpuq node ls"));
  add_node_verb(*node, s, Verb::kList, "ls", "All nodes", example("  gpuq node ls"));
  add_node_verb(*node, s, Verb::kShow, "show", "One node whole", example("  gpuq node show n-0"));
  add_node_verb(*node, s, Verb::kCordon, "cordon", "Start nothing new there",
                example("  gpuq node cordon n-0 --reason 'fan'"));
  add_node_verb(*node, s, Verb::kUncordon, "uncordon", "Use it again",
                example("  gpuq node uncordon n-0"));
  add_node_verb(*node, s, Verb::kDrain, "drain", "Start nothing new there and move away what runs",
                example("  gpuq node drain n-0 --reason 'new disk'"));
}

void build(CLI::App& app, Storage& s) {
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("gpuq ") + version());
  add_globals(app, s);
  app.footer(
      "Server: --server, else GPUQ_SERVER, else ~/.config/gpuq/config.yaml, else "
      "127.0.0.1:7070.\n\n" +
      example("  gpuq run --gpus 1 -- nvidia-smi\n  gpuq status\n  gpuq why last"));
  add_submit(app, s);
  add_run(app, s);
  add_lists(app, s);
  add_looks(app, s);
  add_deeds(app, s);
  add_administration(app, s);
  add_node(app, s);
}

/// The words of a prefix command: SCRIPT and its arguments. A word that begins with a dash before
/// any script is an option that nobody knows.
Result<std::vector<std::string>> script_words(const CLI::App& sub) {
  auto words = sub.remaining();
  if (!words.empty() && words.front().rfind('-', 0) == 0) {
    return Error{ErrorCode::kInvalidArgument,
                 "unknown option '" + words.front() + "' (see gpuq " + sub.get_name() + " --help)"};
  }
  return words;
}

Result<Command> chosen(CLI::App& app, Storage& s, std::vector<std::string> command) {
  const CLI::App* sub = app.get_subcommands().front();
  const std::string name = sub->get_name();
  if (name == "submit" || name == "run") {
    auto words = script_words(*sub);
    if (!words) return words.error();
    s.submit.script = s.run.script = std::move(*words);
    s.submit.command = s.run.command = std::move(command);
    if (name == "run") return Command(std::move(s.run));
    return Command(std::move(s.submit));
  }
  if (name == "ls") return Command(std::move(s.list));
  if (name == "history") return Command(std::move(s.history));
  if (name == "show") return Command(std::move(s.show));
  if (name == "why") return Command(std::move(s.why));
  if (name == "logs") return Command(std::move(s.logs));
  if (name == "wait") return Command(std::move(s.wait));
  if (name == "cancel") return Command(std::move(s.cancel));
  if (name == "hold") return Command(std::move(s.hold));
  if (name == "release") return Command(std::move(s.release));
  if (name == "update") return Command(std::move(s.update));
  if (name == "status") return Command(std::move(s.status));
  if (name == "apply") return Command(std::move(s.apply));
  if (name == "node") return Command(std::move(s.node));
  if (name == "simulate") return Command(std::move(s.simulate));
  return Command(VersionOptions());
}

/// Moves what follows the first `--` into `tail` when it is a command to run.
void split_command(std::vector<std::string>& arguments, std::vector<std::string>& tail) {
  const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
  const bool runs = std::any_of(arguments.begin(), dashes, [](const std::string& word) {
    return word == "submit" || word == "run";
  });
  if (dashes == arguments.end() || !runs) return;
  tail.assign(dashes + 1, arguments.end());
  arguments.erase(dashes, arguments.end());
}

bool knows(const CLI::App& app, const std::string& name) {
  const auto commands = app.get_subcommands([](const CLI::App*) { return true; });
  return std::any_of(commands.begin(), commands.end(),
                     [&](const CLI::App* sub) { return sub->get_name() == name; });
}

std::string help_hint(const CLI::App& app) {
  std::string words = "gpuq";
  const CLI::App* at = &app;
  while (!at->get_subcommands().empty()) {
    at = at->get_subcommands().front();
    words += " " + at->get_name();
  }
  return " (see " + words + " --help)";
}

}  // namespace

Result<std::variant<Invocation, HelpText>> parse_command_line(std::vector<std::string> arguments) {
  using Outcome = std::variant<Invocation, HelpText>;
  const auto storage = std::make_unique<Storage>();
  CLI::App app("A batch queue for shared GPU nodes", "gpuq");
  build(app, *storage);
  if (arguments.empty()) return Outcome(HelpText{app.help()});
  if (arguments.front().rfind('-', 0) != 0 && !knows(app, arguments.front())) {
    return Error{ErrorCode::kInvalidArgument,
                 "unknown command '" + arguments.front() + "' (see gpuq --help)"};
  }
  std::vector<std::string> command;
  split_command(arguments, command);
  try {
    app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));
  } catch (const CLI::CallForVersion& call) {
    return Outcome(HelpText{std::string(call.what()) + "\n"});
  } catch (const CLI::CallForHelp&) {
    return Outcome(HelpText{app.help()});
  } catch (const CLI::Error& error) {
    return Error{ErrorCode::kInvalidArgument, error.what() + help_hint(app)};
  }
  auto picked = chosen(app, *storage, std::move(command));
  if (!picked) return picked.error();
  return Outcome(Invocation{storage->global, std::move(*picked)});
}

}  // namespace gpuq::cli
