#include "common/policy/trace_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "common/policy/units.h"
#include "core/base/text.h"

namespace gpuq {

namespace {

constexpr std::size_t kMaxErrors = 20;
constexpr std::int64_t kMaxSeconds = kMaxDuration.count() / 1000;

/// Fields of one line; quoted ones may hold commas and doubled quotes. False: a quote stays open.
bool split_line(const std::string& line, std::vector<std::string>& fields) {
  fields.assign(1, "");
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  return !quoted;
}

bool next_line(std::istream& in, std::string& line) {
  if (!std::getline(in, line)) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

/// A row on its way: what its fields say, and the first fault.
struct Row {
  Time at{};
  sim::SubmitStep step;
  std::string unit;
  Amount gpus = Amount::units(1);
  std::string fault;
};

using Setter = std::function<void(Row&, const std::string&)>;

// Thousandths of a second are what both times and amounts are counted in.
std::optional<Duration> seconds(Row& row, const std::string& text) {
  const auto amount = parse_amount(text);
  if (!amount || amount->milli > kMaxSeconds * 1000) {
    row.fault = fmt::format("{} is no number of seconds from 0 to {}", quote(text), kMaxSeconds);
    return std::nullopt;
  }
  return Duration(amount->milli);
}

Setter seconds_of(std::function<void(Row&, Duration)> set) {
  return [set = std::move(set)](Row& row, const std::string& text) {
    if (const auto value = seconds(row, text)) set(row, *value);
  };
}

Setter integer_of(std::int64_t min, std::int64_t max,
                  const std::function<void(Row&, std::int32_t)>& set) {
  return [=](Row& row, const std::string& text) {
    const auto value = parse_integer(text, min, max);
    if (!value) {
      row.fault = value.error().message;
    } else {
      set(row, static_cast<std::int32_t>(*value));
    }
  };
}

void set_gpus(Row& row, const std::string& text) {
  const auto amount = parse_amount(text);
  if (!amount || *amount <= kZero) {
    row.fault = amount ? "0 units: a job asks for more than none" : amount.error().message;
  } else {
    row.gpus = *amount;
  }
}

void set_preemptible(Row& row, const std::string& text) {
  if (text != "true" && text != "false") {
    row.fault = fmt::format("{} must be true or false", quote(text));
  }
  row.step.request.preemptible = text == "true";
}

const std::map<std::string, Setter>& columns() {
  static const std::map<std::string, Setter> kColumns{
      {"submit_s", seconds_of([](Row& r, Duration d) { r.at = Time(d); })},
      {"job", [](Row& r, const std::string& text) { r.step.request.name = text; }},
      {"queue", [](Row& r, const std::string& text) { r.step.request.queue = text; }},
      {"share", [](Row& r, const std::string& text) { r.step.request.share = text; }},
      {"unit", [](Row& r, const std::string& text) { r.unit = text; }},
      {"gpus", set_gpus},
      {"instances",
       integer_of(1, kMaxInstances, [](Row& r, std::int32_t n) { r.step.request.instances = n; })},
      {"priority",
       integer_of(0, kMaxPriority, [](Row& r, std::int32_t n) { r.step.request.priority = n; })},
      {"cpus", integer_of(0, 100'000, [](Row& r, std::int32_t n) { r.step.request.cpus = n; })},
      {"runtime_s", seconds_of([](Row& r, Duration d) { r.step.runtime = d; })},
      {"timeout_s", seconds_of([](Row& r, Duration d) { r.step.request.timeout = d; })},
      {"expected_s", seconds_of([](Row& r, Duration d) { r.step.request.expected_run_time = d; })},
      {"grace_s", seconds_of([](Row& r, Duration d) { r.step.request.grace = d; })},
      {"checkpoint_s", seconds_of([](Row& r, Duration d) { r.step.checkpoint = d; })},
      {"start_delay_s", seconds_of([](Row& r, Duration d) { r.step.start_delay = d; })},
      {"preemptible", set_preemptible},
  };
  return kColumns;
}

class TraceReader {
 public:
  TraceReader(std::string file, sim::Scenario& scenario)
      : file_(std::move(file)), scenario_(scenario) {
    for (const sim::TimelineStep& step : scenario.timeline) {
      if (const auto* submit = std::get_if<sim::SubmitStep>(&step.what)) {
        names_.insert(submit->request.name);
      }
    }
    const auto& units = scenario.policy.units;
    if (units && units->size() == 1) only_unit_ = units->front().name;
  }

  Result<void> read(std::istream& in) {
    std::string line;
    if (!next_line(in, line)) return invalid(fmt::format("{}: the file is empty", file_));
    ++line_;
    if (!read_heading(line)) return failure();
    while (errors_ < kMaxErrors && next_line(in, line)) {
      ++line_;
      if (!line.empty()) read_row(line);
    }
    if (errors_ > 0) return failure();
    scenario_.trace_file = file_;
    for (sim::TimelineStep& step : steps_) scenario_.timeline.push_back(std::move(step));
    std::ranges::stable_sort(scenario_.timeline, {}, &sim::TimelineStep::at);
    return {};
  }

 private:
  void wrong(const std::string& message) {
    ++errors_;
    faults_ += fmt::format("{}{}:{}: {}", faults_.empty() ? "" : "\n", file_, line_, message);
  }
  [[nodiscard]] Error failure() const { return invalid(faults_); }

  bool read_heading(const std::string& line) {
    std::vector<std::string> names;
    if (!split_line(line, names)) wrong("a quote is not closed");
    std::set<std::string> seen;
    for (const std::string& name : names) {
      const auto known = columns().find(name);
      if (known == columns().end()) {
        wrong(fmt::format("there is no column {}", quote(name)));
      } else if (!seen.insert(name).second) {
        wrong(fmt::format("the column {} is there twice", quote(name)));
      } else {
        setters_.push_back(&*known);
      }
    }
    if (!seen.contains("submit_s")) wrong("the column submit_s is missing");
    return errors_ == 0;
  }

  void read_row(const std::string& line) {
    if (!split_line(line, fields_)) return wrong("a quote is not closed");
    if (fields_.size() != setters_.size()) {
      return wrong(fmt::format("{} fields: the heading has {}", fields_.size(), setters_.size()));
    }
    Row row;
    row.step.runtime = scenario_.default_runtime;
    for (std::size_t i = 0; i < fields_.size(); ++i) {
      if (!fields_[i].empty()) setters_[i]->second(row, fields_[i]);
      if (!row.fault.empty()) return wrong(fmt::format("{}: {}", setters_[i]->first, row.fault));
      if (fields_[i].empty() && setters_[i]->first == "submit_s") return wrong("submit_s is empty");
    }
    finish(std::move(row));
  }

  void finish(Row row) {
    ++rows_;
    std::string& name = row.step.request.name;
    if (name.empty()) name = fmt::format("trace-{}", rows_);
    if (!names_.insert(name).second)
      return wrong(fmt::format("job {} is there twice", quote(name)));
    if (row.step.checkpoint && *row.step.checkpoint <= Duration(0)) {
      return wrong("checkpoint_s: 0 is no interval: leave it empty for no checkpoints");
    }
    if (row.unit.empty()) row.unit = only_unit_;
    row.step.request.units = {{row.unit, row.gpus}};
    steps_.push_back({row.at, line_, true, std::move(row.step)});
  }

  const std::string file_;
  sim::Scenario& scenario_;
  std::string only_unit_;  ///< "" = the queue's GPU units.
  std::set<std::string> names_;
  std::vector<const std::pair<const std::string, Setter>*> setters_;
  std::vector<std::string> fields_;
  std::vector<sim::TimelineStep> steps_;
  std::int32_t line_ = 0;
  std::int64_t rows_ = 0;
  std::size_t errors_ = 0;
  std::string faults_;
};

}  // namespace

Result<void> add_trace(std::istream& in, const std::string& file_name, sim::Scenario& scenario) {
  return TraceReader(file_name, scenario).read(in);
}

Result<void> add_trace_file(const std::string& path, sim::Scenario& scenario) {
  std::ifstream in(path);
  if (!in) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("{}: no such file, or it can not be read", path)};
  }
  return add_trace(in, path, scenario);
}

}  // namespace gpuq
