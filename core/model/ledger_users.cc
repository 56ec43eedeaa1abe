// What each user of a share holds, in shares that order by users (O10).
#include "core/model/ledger.h"

namespace gpuq {

void Ledger::add_user(ShareBook& share, const Holding& holding, View view, Amount amount) {
  const auto at = share.users.try_emplace({holding.unit, holding.user}).first;
  at->second.held[static_cast<std::size_t>(view)] += amount;
  if (at->second == UserSums()) share.users.erase(at);
}

Amount Ledger::held_by(ShareId share, UnitId unit, const std::string& user, View view) const {
  const auto& users = share_book(share).users;
  const auto found = users.find({unit, user});
  return found == users.end() ? kZero : found->second.held[static_cast<std::size_t>(view)];
}

std::vector<std::string> Ledger::users(ShareId share, UnitId unit) const {
  std::vector<std::string> found;
  for (const auto& [key, sums] : share_book(share).users) {
    if (key.first == unit) found.push_back(key.second);
  }
  return found;
}

}  // namespace gpuq
