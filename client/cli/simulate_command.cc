#include <algorithm>
#include <fstream>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "client/cli/commands.h"
#include "client/cli/simulate_output.h"
#include "client/cli/simulate_plot.h"
#include "common/policy/policy_file.h"
#include "common/policy/scenario_file.h"
#include "common/policy/trace_file.h"

namespace gpuq::cli {

namespace {

/// Beyond it, to check the whole state after every event takes longer than the run.
constexpr std::size_t kMaxCheckedSteps = 2'000;
constexpr std::size_t kPlotSpans = 800;

/// How one file is run and shown.
struct Show {
  bool log = false;  ///< What happened, line by line.
  bool summary = false;
  std::size_t samples = 0;
};

int run(Context& context, const sim::Scenario& scenario, const Show& show, SimulatedRun& into) {
  sim::RunOptions options;
  options.keep_log = show.log;
  options.samples = show.samples;
  options.check_invariants = scenario.timeline.size() <= kMaxCheckedSteps;
  auto result = sim::run_scenario(scenario, options);
  if (!result) {
    context.note(scenario.file + ": " + result.error().message);
    return kUsage;
  }
  into.scenario = &scenario;
  into.result = std::move(*result);
  return kDone;
}

/// The same jobs on the same nodes under the policy of `file`; what only the first is to fulfil is
/// not expected of it.
Result<sim::Scenario> under_policy_of(const std::string& file, const sim::Scenario& scenario) {
  const auto text = read_policy_file(file);
  if (!text) return text.error();
  sim::Scenario other = scenario;
  other.file = file;
  other.expect.clear();
  if (is_scenario_text(*text)) {
    auto parsed = parse_scenario_text(*text, file, {.other_jobs = true});
    if (!parsed) return parsed.error();
    other.policy = std::move(parsed->policy);
  } else {
    auto parsed = parse_policy_file(file);
    if (!parsed) return parsed.error();
    other.policy = std::move(parsed->doc);
  }
  return other;
}

int write_plot(Context& context, const std::string& file, const SimulatedRun& run) {
  std::ofstream out(file, std::ios::binary);
  if (out) out << plot_svg(run);
  out.close();
  if (out) return kDone;
  context.note(file + " could not be written: see that its folder is there and has space");
  return kFailed;
}

void print(Context& context, const SimulatedRun& run, const Show& show) {
  const Terminal& terminal = context.terminal();
  if (context.json()) return print_run_json(terminal.out, run);
  if (show.log) print_run_log(terminal, run.result);
  if (show.summary) print_run_summary(terminal, run.result.summary);
  const bool ok = run.result.failures.empty();
  terminal.out << paint(terminal, ok ? Colour::kGreen : Colour::kRed, ok ? "ok  " : "FAIL") << ' '
               << run.scenario->file << ": " << one_line(run.scenario->title) << '\n';
}

/// The file with the jobs of --trace, and the same under the policy of --compare.
struct Inputs {
  sim::Scenario first;
  std::optional<sim::Scenario> second;
};

Result<Inputs> load(const std::string& file, const SimulateOptions& options) {
  auto scenario = parse_scenario_file(file, {.other_jobs = !options.trace.empty()});
  if (!scenario) return scenario.error();
  if (!options.trace.empty()) {
    if (auto added = add_trace_file(options.trace, *scenario); !added) return added.error();
  }
  Inputs inputs{std::move(*scenario), std::nullopt};
  if (options.compare.empty()) return inputs;
  auto other = under_policy_of(options.compare, inputs.first);
  if (!other) return other.error();
  inputs.second = std::move(*other);
  return inputs;
}

void print_second(Context& context, const SimulatedRun& first, const SimulatedRun& second) {
  if (context.json()) return print_run_json(context.terminal().out, second);
  print_comparison(context.terminal(), first, second);
}

/// One file. 0 to 3 as documented in the help. What is refused prints nothing else.
int simulate_file(Context& context, const std::string& file, const SimulateOptions& options) {
  const bool whole = options.files.size() == 1;
  const auto inputs = load(file, options);
  if (!inputs) return context.fail_each(inputs.error());
  // A table of jobs is replayed for its figures.
  const bool log = options.trace.empty() && !inputs->second && (whole || context.json());
  const Show show{log, whole, options.plot.empty() ? 0 : kPlotSpans};
  SimulatedRun first{nullptr, file, {}};
  SimulatedRun second{nullptr, options.compare, {}};
  if (const int code = run(context, inputs->first, show, first); code != kDone) return code;
  if (inputs->second) {
    if (const int code = run(context, *inputs->second, show, second); code != kDone) return code;
  }
  if (!options.plot.empty()) {
    if (const int code = write_plot(context, options.plot, first); code != kDone) return code;
  }
  print(context, first, show);
  if (inputs->second) print_second(context, first, second);
  for (const auto& failure : first.result.failures) {
    context.note(file + ":" + std::to_string(failure.line) + ": " + failure.message);
  }
  return first.result.failures.empty() ? kDone : kFailed;
}

}  // namespace

int simulate(Context& context, const SimulateOptions& options) {
  const bool with_one = !options.trace.empty() || !options.compare.empty() || !options.plot.empty();
  if (with_one && options.files.size() != 1) {
    context.note("--trace, --compare and --plot go with one scenario file: " +
                 std::to_string(options.files.size()) + " are given");
    return kUsage;
  }
  int code = kDone;
  for (const auto& file : options.files) {
    code = std::max(code, simulate_file(context, file, options));
  }
  return code;
}

}  // namespace gpuq::cli
