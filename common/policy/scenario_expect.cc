// The expectations of a scenario.
#include <fmt/format.h>

#include <algorithm>

#include "common/policy/scenario_reader.h"
#include "common/policy/units.h"
#include "core/base/text.h"
#include "core/model/policy_check.h"

namespace gpuq {

namespace {

/// Reads one entry of `expect`; the map's readers share entry, scenario and issues.
class ExpectReader {
 public:
  ExpectReader(const YamlNode& item, const std::string& path, ScenarioReader& reader)
      : map_(item, path, reader.issues), reader_(reader) {
    expect_.line = item.at.line;
  }

  sim::Expectation read() {
    std::optional<Duration> at;
    if (map_.duration("at", at)) expect_.at = Time(*at);
    if (map_.has("running")) expect_.running.emplace();
    if (expect_.running) jobs("running", *expect_.running);
    jobs("pending", expect_.pending);
    jobs("runnable", expect_.runnable);
    jobs("starting", expect_.starting);
    jobs("not_running", expect_.not_running);
    jobs("succeeded", expect_.succeeded);
    jobs("failed", expect_.failed);
    jobs("started_order", expect_.started_order);
    read_reasons();
    read_forecasts();
    read_preemptions();
    read_places();
    map_.finish();
    return std::move(expect_);
  }

 private:
  void jobs(const char* key, std::vector<std::string>& out) {
    const YamlNode* node = map_.find(key);
    if (node == nullptr || !map_.texts(key, out)) return;
    for (std::size_t i = 0; i < out.size() && i < node->items.size(); ++i) {
      reader_.check_job(node->items[i], map_.path_of(key), out[i]);
    }
  }

  void read_reasons() {
    map_.entries(
        "reason", [&](const std::string& job, const YamlNode& value, const std::string& path) {
          reader_.check_job(value, path, job);
          const auto code = read_text(value, path, reader_.issues);
          if (!code) return;
          if (!is_known_reason(*code)) {
            reader_.add_error_at(value, path,
                                 fmt::format("{} is no reason, such as SHARE_FULL", quote(*code)));
          }
          expect_.reason[job] = *code;
        });
  }

  void read_forecasts() {
    if (map_.has("forecast") && !map_.has("at")) {
      map_.error("forecast", "needs the key 'at': a forecast is made at a moment");
    }
    map_.entries("forecast",
                 [&](const std::string& job, const YamlNode& value, const std::string& path) {
                   reader_.check_job(value, path, job);
                   const auto text = read_text(value, path, reader_.issues);
                   if (!text) return;
                   sim::Foretold& foretold = expect_.forecast[job];
                   foretold.word = *text;
                   if (*text == "UNKNOWN" || *text == "NEVER" || *text == "LATER") return;
                   const auto at = parse_duration(*text);
                   if (at) {
                     foretold.at = Time(*at);
                   } else {
                     reader_.add_error_at(value, path,
                                          fmt::format("{} is neither a time since the start nor "
                                                      "UNKNOWN, NEVER or LATER",
                                                      quote(*text)));
                   }
                 });
  }

  void read_preemptions() {
    map_.entries("preempted",
                 [&](const std::string& job, const YamlNode& value, const std::string& path) {
                   reader_.check_job(value, path, job);
                   const auto count = read_integer(value, path, 0, 1'000'000, reader_.issues);
                   if (count) expect_.preempted[job] = static_cast<std::int32_t>(*count);
                 });
    map_.entries("preempted_by", [&](const std::string& job, const YamlNode& value,
                                     const std::string& path) {
      reader_.check_job(value, path, job);
      MapReader by(value, path, reader_.issues);
      sim::PreemptedBy preempted_by;
      by.require("job");
      if (by.text("job", preempted_by.job)) reader_.check_job(value, path, preempted_by.job);
      by.require("rule");
      by.word("rule", preempted_by.rule,
              {{"CROSS_SHARE", PreemptRule::kCrossShare}, {"IN_SHARE", PreemptRule::kInShare}});
      by.finish();
      expect_.preempted_by[job] = std::move(preempted_by);
    });
  }

  void read_places() {
    map_.entries("held",
                 [&](const std::string& share, const YamlNode& value, const std::string& path) {
                   reader_.check_share(value, path, share);
                   const auto amount = read_amount(value, path, reader_.issues);
                   if (amount) expect_.held[share] = *amount;
                 });
    map_.entries("placed",
                 [&](const std::string& job, const YamlNode& value, const std::string& path) {
                   reader_.check_job(value, path, job);
                   auto nodes = read_texts(value, path, reader_.issues);
                   for (const std::string& node : nodes) reader_.check_node(value, path, node);
                   expect_.placed[job] = std::move(nodes);
                 });
  }

  MapReader map_;
  ScenarioReader& reader_;
  sim::Expectation expect_;
};

}  // namespace

void read_expectations(MapReader& root, ScenarioReader& reader) {
  root.list("expect", [&](const YamlNode& item, const std::string& path) {
    reader.scenario.expect.push_back(ExpectReader(item, path, reader).read());
  });
  std::ranges::stable_sort(reader.scenario.expect, {},
                           [](const sim::Expectation& e) { return e.at.value_or(kNever); });
}

}  // namespace gpuq
