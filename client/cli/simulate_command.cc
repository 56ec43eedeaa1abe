#include <algorithm>
#include <ostream>
#include <string>

#include <nlohmann/json.hpp>

#include "client/cli/commands.h"
#include "client/cli/format.h"
#include "common/policy/scenario_file.h"
#include "common/policy/units.h"
#include "core/sim/runner.h"

namespace gpuq::cli {

namespace {

using Json = nlohmann::ordered_json;

double seconds(std::int64_t ms) { return static_cast<double>(ms) / 1000.0; }

Json log_json(const std::string& file, const sim::LogLine& line) {
  Json object;
  object["file"] = file;
  object["at"] = seconds(to_ms(line.at));
  object["event"] = line.event;
  object["job"] = line.job.empty() ? Json() : Json(line.job);
  object["attempt"] = line.attempt == 0 ? Json() : Json(line.attempt);
  object["share"] = line.share.empty() ? Json() : Json(line.share);
  object["nodes"] = line.nodes;
  object["reason"] = line.reason.empty() ? Json() : Json(line.reason);
  return object;
}

Json share_json(const sim::ShareSummary& share) {
  Json object;
  object["share"] = share.share;
  object["jobs"] = share.jobs;
  object["finished"] = share.finished;
  object["wait_p50"] = seconds(share.wait_p50.count());
  object["wait_p95"] = seconds(share.wait_p95.count());
  object["wait_max"] = seconds(share.wait_max.count());
  object["used_unit_seconds"] = share.used_unit_seconds;
  object["borrowed_unit_seconds"] = share.borrowed_unit_seconds;
  object["lost_unit_seconds"] = share.lost_unit_seconds;
  return object;
}

Json summary_json(const sim::Scenario& scenario, const sim::RunResult& result) {
  Json object;
  object["file"] = scenario.file;
  object["event"] = "SUMMARY";
  object["scenario"] = scenario.title;
  object["ok"] = result.failures.empty();
  object["failures"] = Json::array();
  for (const auto& failure : result.failures) {
    object["failures"].push_back({{"line", failure.line}, {"message", failure.message}});
  }
  object["shares"] = Json::array();
  for (const auto& share : result.summary.shares) object["shares"].push_back(share_json(share));
  object["length"] = seconds(result.summary.length.count());
  object["preemptions"] = result.summary.preemptions;
  object["utilisation"] = result.summary.utilisation;
  object["fragmentation"] = result.summary.fragmentation;
  return object;
}

void print_json(std::ostream& out, const sim::Scenario& scenario, const sim::RunResult& result) {
  const auto line = [&out](const Json& object) {
    out << object.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  };
  for (const auto& entry : result.log) line(log_json(scenario.file, entry));
  line(summary_json(scenario, result));
}

void print_log(const Terminal& terminal, const sim::RunResult& result) {
  Table table({{"AT", Table::Align::kRight}, {"EVENT"}, {"JOB"}, {"SHARE"}, {"NODES"}, {"WHY"}});
  for (const auto& entry : result.log) {
    std::string nodes;
    for (const auto& node : entry.nodes) nodes += (nodes.empty() ? "" : ",") + node;
    const std::string job =
        entry.attempt == 0 ? entry.job : entry.job + "#" + std::to_string(entry.attempt);
    table.add({gpuq::format_duration(Duration(to_ms(entry.at))), entry.event, job, entry.share,
               cut_text(nodes, 40), entry.reason});
  }
  if (!table.empty()) table.print(terminal);
}

std::string percent(double part) {
  return std::to_string(static_cast<int>(part * 100.0 + 0.5)) + "%";
}

std::string rounded(double value) { return std::to_string(static_cast<std::int64_t>(value + 0.5)); }

void print_summary(const Terminal& terminal, const sim::Summary& summary) {
  using Align = Table::Align;
  Table table({{"SHARE"},
               {"JOBS", Align::kRight},
               {"ENDED", Align::kRight},
               {"WAIT P50", Align::kRight},
               {"P95", Align::kRight},
               {"MAX", Align::kRight},
               {"UNIT-S USED", Align::kRight},
               {"BORROWED", Align::kRight},
               {"LOST", Align::kRight}});
  for (const auto& share : summary.shares) {
    table.add({share.share, std::to_string(share.jobs), std::to_string(share.finished),
               gpuq::format_duration(share.wait_p50), gpuq::format_duration(share.wait_p95),
               gpuq::format_duration(share.wait_max), rounded(share.used_unit_seconds),
               rounded(share.borrowed_unit_seconds), rounded(share.lost_unit_seconds)});
  }
  if (!table.empty()) table.print(terminal);
  terminal.out << "Pool: " << percent(summary.utilisation) << " used, "
               << percent(summary.fragmentation) << " fragmented, " << summary.preemptions
               << (summary.preemptions == 1 ? " preemption in " : " preemptions in ")
               << gpuq::format_duration(summary.length) << '\n';
}

/// One file. 0 to 3 as documented in the help.
int simulate_file(Context& context, const std::string& file, bool whole) {
  const Terminal& terminal = context.terminal();
  auto scenario = parse_scenario_file(file);
  if (!scenario) return context.fail_each(scenario.error());
  sim::RunOptions options;
  options.keep_log = whole || context.json();
  auto result = sim::run_scenario(*scenario, options);
  if (!result) {
    context.note(file + ": " + result.error().message);
    return kUsage;
  }
  if (context.json()) {
    print_json(terminal.out, *scenario, *result);
  } else {
    if (whole) {
      print_log(terminal, *result);
      print_summary(terminal, result->summary);
    }
    const bool ok = result->failures.empty();
    terminal.out << paint(terminal, ok ? Colour::kGreen : Colour::kRed, ok ? "ok  " : "FAIL") << ' '
                 << file << ": " << one_line(scenario->title) << '\n';
  }
  for (const auto& failure : result->failures) {
    context.note(file + ":" + std::to_string(failure.line) + ": " + failure.message);
  }
  return result->failures.empty() ? kDone : kFailed;
}

}  // namespace

int simulate(Context& context, const SimulateOptions& options) {
  int code = kDone;
  for (const auto& file : options.files) {
    code = std::max(code, simulate_file(context, file, options.files.size() == 1));
  }
  return code;
}

}  // namespace gpuq::cli
