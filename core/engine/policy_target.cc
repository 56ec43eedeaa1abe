#include "core/engine/policy_target.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "core/base/text.h"
#include "core/model/policy_document.h"

namespace gpuq {

namespace {

bool carries_shares_only(const QueueDef& queue) {
  return queue.scheduling_policy.empty() && queue.service_environments.empty() &&
         !queue.shares.empty();
}

template <typename Def>
void add_missing(std::vector<Def>& target, const std::vector<Def>& base) {
  const std::size_t named = target.size();
  for (const Def& def : base) {
    const auto end = target.begin() + static_cast<std::ptrdiff_t>(named);
    if (std::find_if(target.begin(), end, [&](const Def& d) { return d.name == def.name; }) ==
        end) {
      target.push_back(def);
    }
  }
}

class Composer {
 public:
  Composer(const PolicyDoc& base, const ApplyPolicyCommand& command)
      : base_(base), command_(command) {}

  PolicyTarget run() {
    const PolicyDoc& doc = command_.doc;
    target_.units = kind(doc.units, *base_.units, target_.doc.units, "capacity_units");
    target_.environments = kind(doc.environments, *base_.environments, target_.doc.environments,
                                "service_environments");
    target_.policies =
        kind(doc.policies, *base_.policies, target_.doc.policies, "scheduling_policies");
    queues();
    for (const auto& [what, name] : command_.deletions) remove(what, name);
    return std::move(target_);
  }

 private:
  template <typename Def>
  std::size_t kind(const std::optional<std::vector<Def>>& named, const std::vector<Def>& base,
                   std::optional<std::vector<Def>>& out, const char* key) {
    if (!named) {
      out = base;
      return 0;
    }
    out = *named;
    if (command_.partial) {
      for (std::size_t i = 0; i < named->size(); ++i) {
        existence(find_named(base, (*named)[i].name) != nullptr, (*named)[i].name,
                  fmt::format("{}[{}]", key, i));
      }
      add_missing(*out, base);
    }
    return named->size();
  }

  void existence(bool exists, const std::string& name, const std::string& path) {
    if (!command_.partial) return;
    if (exists && command_.must_not_exist)
      error(path, fmt::format("{} exists already", quote(name)));
    if (!exists && command_.must_exist) {
      error(path, fmt::format("there is no {}: create it first", quote(name)));
    }
  }

  void queues() {
    auto& out = target_.doc.queues.emplace();
    if (command_.doc.queues) {
      for (std::size_t i = 0; i < command_.doc.queues->size(); ++i) {
        const QueueDef& named = (*command_.doc.queues)[i];
        target_.shares.push_back(named.shares.size());
        out.push_back(command_.partial ? merged(named, fmt::format("job_queues[{}]", i)) : named);
      }
    }
    target_.queues = out.size();
    if (command_.partial || !command_.doc.queues) add_missing(out, *base_.queues);
  }

  QueueDef merged(const QueueDef& named, const std::string& path) {
    const QueueDef* old = find_named(*base_.queues, named.name);
    const bool shares_only = carries_shares_only(named);
    if (!shares_only) {
      existence(old != nullptr, named.name, path);
    } else if (old == nullptr) {
      error(path, fmt::format("there is no queue {}: create it first", quote(named.name)));
    }
    if (old == nullptr) return named;
    QueueDef queue = shares_only ? *old : named;
    queue.shares = named.shares;
    for (std::size_t i = 0; shares_only && i < named.shares.size(); ++i) {
      existence(find_named(old->shares, named.shares[i].name) != nullptr, named.shares[i].name,
                fmt::format("{}.quota_shares[{}]", path, i));
    }
    add_missing(queue.shares, old->shares);
    return queue;
  }

  void remove(const std::string& what, const std::string& name) {
    bool found = false;
    const auto drop = [&](auto& defs) {
      found = std::erase_if(defs, [&](const auto& def) { return def.name == name; }) > 0;
    };
    if (what == "unit") {
      drop(*target_.doc.units);
    } else if (what == "environment") {
      drop(*target_.doc.environments);
    } else if (what == "policy") {
      drop(*target_.doc.policies);
    } else if (what == "queue") {
      drop(*target_.doc.queues);
    } else if (what == "share") {
      found = remove_share(name);
    } else {
      error("", fmt::format("there is no kind {}", quote(what)));
      return;
    }
    if (!found) error("", fmt::format("there is no {} {}", what, quote(name)));
  }

  bool remove_share(const std::string& name) {
    const std::size_t slash = name.find('/');
    if (slash == std::string::npos) return false;
    for (QueueDef& queue : *target_.doc.queues) {
      if (queue.name != name.substr(0, slash)) continue;
      return std::erase_if(queue.shares, [&](const ShareDef& share) {
               return share.name == name.substr(slash + 1);
             }) > 0;
    }
    return false;
  }

  void error(std::string path, std::string message) {
    target_.issues.push_back({true, std::move(path), std::move(message)});
  }

  const PolicyDoc& base_;
  const ApplyPolicyCommand& command_;
  PolicyTarget target_;
};

/// The number in "KEY[N]..." and what follows; nullopt if `path` starts otherwise.
struct Indexed {
  std::size_t index = 0;
  std::size_t end = 0;  ///< Behind the bracket.
};
std::optional<Indexed> indexed(const std::string& path, const std::string& key) {
  if (!path.starts_with(key + "[")) return std::nullopt;
  Indexed result;
  const char* first = path.data() + key.size() + 1;
  const auto [end, failed] = std::from_chars(first, path.data() + path.size(), result.index);
  if (failed != std::errc{}) return std::nullopt;
  result.end = static_cast<std::size_t>(end - path.data()) + 1;
  return result;
}

}  // namespace

std::string PolicyTarget::command_path(std::string path) const {
  const std::pair<const char*, std::size_t> kinds[] = {{"capacity_units", units},
                                                       {"service_environments", environments},
                                                       {"scheduling_policies", policies},
                                                       {"job_queues", queues}};
  for (const auto& [key, named] : kinds) {
    const auto item = indexed(path, key);
    if (!item) continue;
    if (item->index >= named) return key;
    const std::string rest = path.substr(std::min(item->end, path.size()));
    const auto share = indexed(rest, ".quota_shares");
    if (share && item->index < shares.size() && share->index >= shares[item->index]) {
      return path.substr(0, item->end);
    }
  }
  return path;
}

PolicyTarget compose_policy(const PolicyDoc& base, const ApplyPolicyCommand& command) {
  return Composer(base, command).run();
}

}  // namespace gpuq
