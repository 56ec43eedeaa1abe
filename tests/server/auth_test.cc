#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <sstream>

#include "server/auth/authorize.h"
#include "server/auth/peer.h"
#include "tests/server/fakes.h"

namespace gpuq::auth {
namespace {

using testing::HasSubstr;

constexpr Verb kAllVerbs[] = {Verb::kSubmitJob,  Verb::kReadJob,      Verb::kUpdateJob,
                              Verb::kCancelJob,  Verb::kReadLog,      Verb::kWatchEvents,
                              Verb::kReadPolicy, Verb::kChangePolicy, Verb::kReadNode,
                              Verb::kChangeNode, Verb::kReadStatus,   Verb::kAgentSession,
                              Verb::kAgentLogs};

bool allowed(std::uint32_t roles, Verb verb) {
  return authorize({"ada", roles, Method::kLoopback}, verb, {}).has_value();
}

TEST(Authorize, LoopbackCallersMayDoEverything) {
  for (const Verb verb : kAllVerbs) EXPECT_TRUE(allowed(kUser | kAdmin | kAgent, verb));
}

TEST(Authorize, RolesAreBounded) {
  for (const Verb verb : kAllVerbs) {
    const bool agents = verb == Verb::kAgentSession || verb == Verb::kAgentLogs;
    const bool admins = verb == Verb::kChangePolicy || verb == Verb::kChangeNode;
    EXPECT_EQ(allowed(kAgent, verb), agents) << to_string(verb);
    EXPECT_EQ(allowed(kUser, verb), !agents && !admins) << to_string(verb);
    EXPECT_EQ(allowed(kAdmin, verb), !agents) << to_string(verb);
    EXPECT_FALSE(allowed(kNoRole, verb)) << to_string(verb);
  }
}

TEST(Authorize, WhatTheTableDoesNotKnowIsRefused) {
  const auto result =
      authorize({"ada", kUser | kAdmin | kAgent, Method::kLoopback}, static_cast<Verb>(200), {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kPermissionDenied);
}

TEST(Authorize, NamesWhatIsMissing) {
  const auto result =
      authorize({"ada", kUser, Method::kLoopback}, Verb::kChangePolicy, {"queue", "training", ""});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().message,
            "user ada may not change the policy (queue training): role admin is needed");
}

TEST(Authorize, UnknownCallersAreUnauthenticated) {
  const auto result = authorize({}, Verb::kReadJob, {});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::kUnauthenticated);
}

TEST(Peer, ReadsWhatTheTransportWrites) {
  const auto v4 = parse_peer("ipv4:127.0.0.1:4711");
  ASSERT_TRUE(v4);
  EXPECT_EQ(v4->port, 4711);
  EXPECT_TRUE(v4->is_loopback());
  for (const char* text : {"ipv6:[::1]:80", "ipv6:%5B::1%5D:80"}) {
    const auto v6 = parse_peer(text);
    ASSERT_TRUE(v6) << text;
    EXPECT_TRUE(v6->is_loopback());
  }
  EXPECT_EQ(parse_peer("ipv6:[::ffff:127.0.0.1]:4711"), v4);
  EXPECT_FALSE(parse_peer("ipv4:10.0.0.1:80")->is_loopback());
  for (const char* text :
       {"unix:/tmp/x", "ipv4:127.0.0.1", "ipv4:nonsense:1", "ipv4:127.0.0.1:99999", ""}) {
    EXPECT_FALSE(parse_peer(text)) << text;
  }
}

constexpr const char* kTable =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout\n"
    "   0: 0100007F:1B9E 00000000:0000 0A 00000000:00000000 00:00000000 00000000     7        0 1\n"
    "   1: 0100007F:1267 0100007F:1B9E 01 00000000:00000000 00:00000000 00000000  1000        0 2\n"
    "   2: 0100007F:1268 0100007F:1B9E 06 00000000:00000000 00:00000000 00000000  1001        0 3\n"
    "   3: 0100007F:1269 0100007F:0050 01 00000000:00000000 00:00000000 00000000  1002        0 "
    "4\n";

TEST(Peer, OwnerIsTheOneOfTheEstablishedConnectionToUs) {
  const auto owner = [](const char* peer) {
    std::istringstream table(kTable);
    return find_socket_owner(table, *parse_peer(peer), {0x1B9E});
  };
  EXPECT_EQ(owner("ipv4:127.0.0.1:4711"), 1000U);
  EXPECT_EQ(owner("ipv4:127.0.0.1:4712"), std::nullopt);  // closing
  EXPECT_EQ(owner("ipv4:127.0.0.1:4713"), std::nullopt);  // to another program
  EXPECT_EQ(owner("ipv4:127.0.0.1:9"), std::nullopt);
}

TEST(Peer, MappedAddressesAreFoundInTheTableOfIpv6) {
  std::istringstream table(
      "  sl  local_address                         remote_address                        st\n"
      "   0: 0000000000000000FFFF00000100007F:1267 0000000000000000FFFF00000100007F:1B9E 01 "
      "00000000:00000000 00:00000000 00000000  1000        0 2\n");
  EXPECT_EQ(find_socket_owner(table, *parse_peer("ipv4:127.0.0.1:4711"), {0x1B9E}), 1000U);
}

TEST(Peer, RemoteCallersAreNobodyUnlessLetIn) {
  rpc::FakeClock clock;
  PeerIdentifier closed(clock, false);
  EXPECT_EQ(closed.identify("ipv4:10.1.2.3:80").method, Method::kNone);
  PeerIdentifier open(clock, true);
  const Caller caller = open.identify("ipv4:10.1.2.3:80");
  EXPECT_EQ(caller.method, Method::kInsecure);
  EXPECT_EQ(caller.user, kAnonymous);
  // A loopback connection that the kernel does not know (any more) has no name.
  EXPECT_EQ(closed.identify("ipv4:127.0.0.1:1").user, kAnonymous);
}

}  // namespace
}  // namespace gpuq::auth
