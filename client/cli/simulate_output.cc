#include "client/cli/simulate_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "client/cli/format.h"
#include "common/policy/units.h"

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

Json waits_json(Duration p50, Duration p95, Duration max) {
  return {{"wait_p50", seconds(p50.count())},
          {"wait_p95", seconds(p95.count())},
          {"wait_max", seconds(max.count())}};
}

Json share_json(const sim::ShareSummary& share) {
  Json object;
  object["share"] = share.share;
  object["jobs"] = share.jobs;
  object["finished"] = share.finished;
  object.update(waits_json(share.wait_p50, share.wait_p95, share.wait_max));
  object["used_unit_seconds"] = share.used_unit_seconds;
  object["borrowed_unit_seconds"] = share.borrowed_unit_seconds;
  object["lost_unit_seconds"] = share.lost_unit_seconds;
  object["priorities"] = Json::array();
  for (const auto& line : share.priorities) {
    Json priority{{"priority", line.priority}, {"jobs", line.jobs}};
    priority.update(waits_json(line.wait_p50, line.wait_p95, line.wait_max));
    object["priorities"].push_back(std::move(priority));
  }
  return object;
}

Json summary_json(const SimulatedRun& run) {
  const sim::Scenario& scenario = *run.scenario;
  const sim::RunResult& result = run.result;
  Json object;
  object["file"] = scenario.file;
  object["policy"] = run.policy;
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

std::string percent(double part) { return fmt::format("{:.0f}%", part * 100.0); }

std::string rounded(double value) { return fmt::format("{:.0f}", value); }

std::string unit_hours(double unit_seconds) { return fmt::format("{:.1f}", unit_seconds / 3600); }

template <typename Line>
std::vector<std::string> waits(const Line& line) {
  return {gpuq::format_duration(line.wait_p50), gpuq::format_duration(line.wait_p95),
          gpuq::format_duration(line.wait_max)};
}

void append(std::vector<std::string>& row, const std::vector<std::string>& cells) {
  row.insert(row.end(), cells.begin(), cells.end());
}

// Waiting by priority says nothing new where a share has one.
template <typename AddLine>
void for_priorities(const sim::ShareSummary& share, AddLine&& add) {
  if (share.priorities.size() < 2) return;
  for (const auto& line : share.priorities) add(line);
}

const sim::PrioritySummary* same_priority(const sim::ShareSummary* share, std::int32_t priority) {
  if (share == nullptr) return nullptr;
  const auto it = std::ranges::find(share->priorities, priority, &sim::PrioritySummary::priority);
  return it == share->priorities.end() ? nullptr : &*it;
}

const sim::ShareSummary* same_share(const sim::Summary& summary, const std::string& name) {
  const auto it = std::ranges::find(summary.shares, name, &sim::ShareSummary::share);
  return it == summary.shares.end() ? nullptr : &*it;
}

std::string pair_of(const std::string& before, const std::string& after) {
  return before == after ? before : before + " -> " + after;
}

template <typename Line>
std::vector<std::string> wait_pairs(const Line& before, const Line* after) {
  std::vector<std::string> cells = waits(before);
  if (after == nullptr) return cells;
  const std::vector<std::string> others = waits(*after);
  for (std::size_t i = 0; i < cells.size(); ++i) cells[i] = pair_of(cells[i], others[i]);
  return cells;
}

std::vector<std::string> compared(const sim::ShareSummary& before, const sim::ShareSummary* after) {
  std::vector<std::string> row{before.share, "", std::to_string(before.jobs)};
  append(row, wait_pairs(before, after));
  const sim::ShareSummary& other = after == nullptr ? before : *after;
  append(row, {pair_of(unit_hours(before.used_unit_seconds), unit_hours(other.used_unit_seconds)),
               pair_of(unit_hours(before.borrowed_unit_seconds),
                       unit_hours(other.borrowed_unit_seconds)),
               pair_of(unit_hours(before.lost_unit_seconds), unit_hours(other.lost_unit_seconds))});
  return row;
}

}  // namespace

void print_run_json(std::ostream& out, const SimulatedRun& run) {
  const auto line = [&out](const Json& object) {
    out << object.dump(-1, ' ', false, Json::error_handler_t::replace) << '\n';
  };
  for (const auto& entry : run.result.log) line(log_json(run.scenario->file, entry));
  line(summary_json(run));
}

void print_run_log(const Terminal& terminal, const sim::RunResult& result) {
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

void print_run_summary(const Terminal& terminal, const sim::Summary& summary) {
  Table table({{"SHARE"},
               {"PRIORITY", Table::Align::kRight},
               {"JOBS", Table::Align::kRight},
               {"ENDED", Table::Align::kRight},
               {"WAIT P50", Table::Align::kRight},
               {"P95", Table::Align::kRight},
               {"MAX", Table::Align::kRight},
               {"UNIT-S USED", Table::Align::kRight},
               {"BORROWED", Table::Align::kRight},
               {"LOST", Table::Align::kRight}});
  for (const auto& share : summary.shares) {
    std::vector<std::string> row{share.share, "", std::to_string(share.jobs),
                                 std::to_string(share.finished)};
    append(row, waits(share));
    append(row, {rounded(share.used_unit_seconds), rounded(share.borrowed_unit_seconds),
                 rounded(share.lost_unit_seconds)});
    table.add(std::move(row));
    for_priorities(share, [&table](const sim::PrioritySummary& line) {
      std::vector<std::string> cells{"", std::to_string(line.priority), std::to_string(line.jobs),
                                     ""};
      append(cells, waits(line));
      append(cells, {"", "", ""});
      table.add(std::move(cells));
    });
  }
  if (!table.empty()) table.print(terminal);
  terminal.out << "Pool: " << percent(summary.utilisation) << " used, "
               << percent(summary.fragmentation) << " fragmented, " << summary.preemptions
               << (summary.preemptions == 1 ? " preemption in " : " preemptions in ")
               << gpuq::format_duration(summary.length) << '\n';
}

void print_comparison(const Terminal& terminal, const SimulatedRun& before,
                      const SimulatedRun& after) {
  terminal.out << before.policy << " -> " << after.policy << '\n';
  Table table({{"SHARE"},
               {"PRIORITY", Table::Align::kRight},
               {"JOBS", Table::Align::kRight},
               {"WAIT P50", Table::Align::kRight},
               {"P95", Table::Align::kRight},
               {"MAX", Table::Align::kRight},
               {"UNIT-H USED", Table::Align::kRight},
               {"BORROWED", Table::Align::kRight},
               {"LOST", Table::Align::kRight}});
  for (const auto& share : before.result.summary.shares) {
    const sim::ShareSummary* other = same_share(after.result.summary, share.share);
    table.add(compared(share, other));
    for_priorities(share, [&](const sim::PrioritySummary& line) {
      std::vector<std::string> cells{"", std::to_string(line.priority), std::to_string(line.jobs)};
      append(cells, wait_pairs(line, same_priority(other, line.priority)));
      append(cells, {"", "", ""});
      table.add(std::move(cells));
    });
  }
  if (!table.empty()) table.print(terminal);
  const sim::Summary& a = before.result.summary;
  const sim::Summary& b = after.result.summary;
  terminal.out << "Pool: used " << pair_of(percent(a.utilisation), percent(b.utilisation))
               << ", fragmented " << pair_of(percent(a.fragmentation), percent(b.fragmentation))
               << ", preemptions "
               << pair_of(std::to_string(a.preemptions), std::to_string(b.preemptions))
               << ", length "
               << pair_of(gpuq::format_duration(a.length), gpuq::format_duration(b.length)) << '\n';
}

}  // namespace gpuq::cli
