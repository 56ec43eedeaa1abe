#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "client/cli/bars.h"
#include "client/cli/commands.h"
#include "client/cli/format.h"

namespace gpuq::cli {

namespace {

constexpr int kBarWidth = 30;

BarAmounts amounts_of(const v1::ShareUsage& share) {
  BarAmounts amounts;
  amounts.borrowed = share.borrowed_milli();
  amounts.own = share.held_milli() - share.borrowed_milli();
  amounts.lent = share.lent_milli();
  amounts.idle = share.idle_milli();
  return amounts;
}

std::string share_notes(const v1::ShareUsage& share) {
  std::string text;
  const auto add = [&text](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (share.borrowed_milli() > 0) add("borrows " + format_milli(share.borrowed_milli()));
  if (share.borrowed_usage_milli() > 0) {
    add("has borrowed " + format_milli(share.borrowed_usage_milli()) + " on average");
  }
  if (share.lent_milli() > 0) add("lends " + format_milli(share.lent_milli()));
  if (share.stopping_milli() > 0) add("stopping " + format_milli(share.stopping_milli()));
  if (share.booked_milli() > 0) add("booked " + format_milli(share.booked_milli()));
  if (share.state() == v1::ADMIN_STATE_DISABLED) add("DISABLED");
  return text;
}

// The users of a share that is fair between them, the lowest usage first.
void print_users(std::ostream& out, const v1::ShareUsage& share) {
  std::vector<const v1::UserUsage*> users;
  for (const auto& user : share.users()) users.push_back(&user);
  std::ranges::stable_sort(users, {}, &v1::UserUsage::usage_milli);
  std::string text;
  for (const auto* user : users) {
    text += (text.empty() ? "" : "; ") + user->user() + " holds " +
            format_milli(user->held_milli()) + ", on average " + format_milli(user->usage_milli());
  }
  if (!text.empty()) {
    out << "Users of " << share.job_queue() << "/" << share.quota_share_name() << ": " << text
        << '\n';
  }
}

void print_unit(const Context& context, const v1::UnitUsage& unit) {
  std::ostream& out = context.terminal().out;
  out << '\n'
      << paint(context.terminal(), Colour::kBold, unit.capacity_unit()) << " in "
      << unit.service_environment() << ": " << format_milli(unit.capacity_milli()) << " usable, "
      << format_milli(unit.held_milli()) << " held, " << format_milli(unit.free_milli()) << " free";
  if (unit.unallocated_milli() > 0) {
    out << ", " << format_milli(unit.unallocated_milli()) << " owned by no share";
  }
  if (unit.state() == v1::ADMIN_STATE_DISABLED) out << ", DISABLED";
  out << '\n';
  std::int64_t full = 1;
  for (const auto& share : unit.shares()) {
    full = std::max({full, share.cap_milli() + share.borrowed_milli(), share.held_milli()});
  }
  using Align = Table::Align;
  Table table({{"SHARE"},
               {"STRATEGY"},
               {"HELD", Align::kRight},
               {"CAP", Align::kRight},
               {"RUNS", Align::kRight},
               {"WAITS", Align::kRight},
               {"USE"},
               {"NOTES"}});
  for (const auto& share : unit.shares()) {
    table.add({share.job_queue() + "/" + share.quota_share_name(), share.strategy().strategy(),
               format_milli(share.held_milli()), format_milli(share.cap_milli()),
               std::to_string(share.active_jobs()), std::to_string(share.waiting_jobs()),
               share_bar(context.terminal(), amounts_of(share), full, kBarWidth),
               share_notes(share)});
  }
  table.print(context.terminal());
  for (const auto& share : unit.shares()) print_users(out, share);
}

void print_status(const Context& context, const v1::ClusterStatus& status) {
  std::ostream& out = context.terminal().out;
  const auto& nodes = status.nodes();
  out << "Nodes: " << nodes.total() << ", " << nodes.up() << " up";
  const std::pair<const char*, std::int32_t> others[] = {{"unreachable", nodes.unreachable()},
                                                         {"down", nodes.down()},
                                                         {"cordoned", nodes.cordoned()},
                                                         {"unhealthy", nodes.unhealthy()}};
  for (const auto& [what, count] : others) {
    if (count > 0) out << ", " << count << " " << what;
  }
  out << '\n';
  for (const auto& queue : status.queues()) {
    out << "Queue " << queue.job_queue() << ": " << queue.active_jobs() << " active, "
        << queue.waiting_jobs() << " waiting"
        << (queue.state() == v1::ADMIN_STATE_DISABLED ? ", DISABLED" : "") << '\n';
  }
  for (const auto& unit : status.units()) print_unit(context, unit);
  if (!status.units().empty()) out << '\n' << bar_legend(context.terminal()) << '\n';
}

}  // namespace

int status(Context& context, const StatusOptions& options) {
  auto client = context.client();
  if (!client) return context.fail(client.error());
  v1::GetStatusRequest request;
  request.set_job_queue(options.queue);
  auto answer = (*client)->status(request);
  if (!answer) return context.fail(answer.error());
  if (context.json()) {
    context.print_json(*answer);
  } else {
    print_status(context, *answer);
  }
  return kDone;
}

}  // namespace gpuq::cli
