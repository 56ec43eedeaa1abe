#include "server/auth/authorize.h"

#include <algorithm>
#include <array>

namespace gpuq::auth {

namespace {

struct Rule {
  Verb verb;
  std::uint32_t roles;  // any of these may
  const char* words;
};

constexpr std::array kRules{
    Rule{Verb::kSubmitJob, kUser | kAdmin, "submit jobs"},
    Rule{Verb::kReadJob, kUser | kAdmin, "look at jobs"},
    Rule{Verb::kUpdateJob, kUser | kAdmin, "change jobs"},
    Rule{Verb::kCancelJob, kUser | kAdmin, "cancel jobs"},
    Rule{Verb::kReadLog, kUser | kAdmin, "read output of jobs"},
    Rule{Verb::kWatchEvents, kUser | kAdmin, "follow events"},
    Rule{Verb::kReadPolicy, kUser | kAdmin, "look at the policy"},
    Rule{Verb::kChangePolicy, kAdmin, "change the policy"},
    Rule{Verb::kReadNode, kUser | kAdmin, "look at nodes"},
    Rule{Verb::kChangeNode, kAdmin, "change nodes"},
    Rule{Verb::kReadStatus, kUser | kAdmin, "look at the status"},
    Rule{Verb::kAgentSession, kAgent, "speak for a node"},
    Rule{Verb::kAgentLogs, kAgent, "hand in logs for a node"},
};

const Rule* find(Verb verb) {
  const auto it = std::ranges::find(kRules, verb, &Rule::verb);
  return it == kRules.end() ? nullptr : &*it;
}

const char* role_names(std::uint32_t roles) {
  if ((roles & kUser) != 0) return "user";
  if ((roles & kAdmin) != 0) return "admin";
  if ((roles & kAgent) != 0) return "agent";
  return "none";
}

}  // namespace

const char* to_string(Method method) {
  switch (method) {
    case Method::kNone:
      return "none";
    case Method::kLoopback:
      return "loopback";
    case Method::kInsecure:
      return "insecure";
  }
  return "none";
}

const char* to_string(Verb verb) {
  const Rule* rule = find(verb);
  return rule == nullptr ? "do this" : rule->words;
}

Result<> authorize(const Caller& caller, Verb verb, const Object& object) {
  if (caller.method == Method::kNone) {
    return Error{ErrorCode::kUnauthenticated,
                 "the server does not know who calls: connect from the server's own machine"};
  }
  const Rule* rule = find(verb);
  if (rule != nullptr && (caller.roles & rule->roles) != 0) return {};
  std::string what = std::string("user ") + caller.user + " may not " + to_string(verb);
  if (!object.name.empty()) what += std::string(" (") + object.kind + " " + object.name + ")";
  if (rule != nullptr) what += std::string(": role ") + role_names(rule->roles) + " is needed";
  return Error{ErrorCode::kPermissionDenied, std::move(what)};
}

}  // namespace gpuq::auth
