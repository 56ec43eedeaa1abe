// The session's rules - fences, epochs, reconnecting, heartbeats - over a transport of the test's
// own.
#include "agent/session.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "tests/agent/support.h"

namespace gpuq::agent {
namespace {

using ::testing::HasSubstr;

class FakeTransport final : public Transport {
 public:
  void open(Handler handler) override {
    ++opened;
    handler_ = std::move(handler);
    connected = true;
  }
  void send(const ToServer& message) override {
    if (connected) sent.push_back(message);
  }
  void close() override {
    connected = false;
    handler_ = {};
  }

  void receive(const FromServer& message) {
    const Handler handler = handler_;
    if (handler.on_message) handler.on_message(message);
  }
  void lose(const std::string& reason) {
    const Handler handler = std::exchange(handler_, {});
    connected = false;
    if (handler.on_closed) handler.on_closed(reason);
  }
  template <typename M>
  std::vector<M> all() const {
    std::vector<M> out;
    for (const auto& message : sent) {
      if (const auto* m = std::get_if<M>(&message)) out.push_back(*m);
    }
    return out;
  }

  int opened = 0;
  bool connected = false;
  std::vector<ToServer> sent;

 private:
  Handler handler_;
};

class SessionTest : public ::testing::Test {
 protected:
  SessionTest() : loop(clock) { make_session(); }

  void make_session() {
    session.reset();
    agent.reset();
    agent = std::make_unique<TestAgent>(loop, dir.path());
    Session::Options options;
    options.node.node_name = "n1";
    options.backoff_min = Duration(4);
    options.backoff_max = Duration(16);
    options.random_below = [](unsigned) { return 0U; };
    options.trouble = [this] { return trouble; };
    session = std::make_unique<Session>(loop, transport, agent->state, *agent->instances, options);
    agent->on_change = [this](const InstanceStatus& status) { session->report(status); };
    session->start();
  }
  Welcome welcome(std::uint64_t epoch, const std::string& store = "store-a") {
    Welcome out;
    out.server = {store, epoch, 0};
    return out;
  }
  StartOrder start(std::int64_t attempt, std::uint64_t epoch, const std::string& script,
                   const std::string& store = "store-a") {
    auto order = make_order(attempt, sh(script));
    order.fence = {store, epoch, attempt};
    return order;
  }
  InstanceStatus last_report() { return transport.all<AttemptReport>().back().status; }
  bool final_report(std::int64_t attempt) {
    return run_until(loop, [&] {
      const auto reports = transport.all<AttemptReport>();
      return !reports.empty() && reports.back().status.fence.attempt_id == attempt &&
             is_final(reports.back().status.state);
    });
  }

  BootClock clock;
  TempDir dir;
  EventLoop loop;
  std::string trouble;
  FakeTransport transport;
  std::unique_ptr<TestAgent> agent;
  std::unique_ptr<Session> session;
};

TEST_F(SessionTest, HelloComesFirstAndOrdersBeforeWelcomeAreIgnored) {
  ASSERT_EQ(transport.sent.size(), 1U);
  EXPECT_EQ(std::get<Hello>(transport.sent[0]).node_name, "n1");
  EXPECT_FALSE(std::get<Hello>(transport.sent[0]).highest_fence);
  transport.receive(start(1, 1, "true"));
  EXPECT_TRUE(agent->instances->empty());
}

TEST_F(SessionTest, RunsAJobAndReportsEveryStep) {
  transport.receive(welcome(1));
  transport.receive(start(1, 1, "exit 4"));
  ASSERT_TRUE(final_report(1));
  std::vector<InstanceState> states;
  std::uint64_t last_id = 0;
  for (const auto& report : transport.all<AttemptReport>()) {
    states.push_back(report.status.state);
    EXPECT_GT(report.report_id, last_id);
    last_id = report.report_id;
  }
  EXPECT_EQ(states.front(), InstanceState::kStarting);
  EXPECT_EQ(states.back(), InstanceState::kExited);
  EXPECT_EQ(last_report().exit_code, 4);
}

TEST_F(SessionTest, TroubleIsToldBeforeTheStartThatItSpoiled) {
  transport.receive(welcome(1));
  trouble = "the disk is full";
  transport.receive(start(1, 1, "true"));
  ASSERT_GE(transport.sent.size(), 2U);
  const auto* told = std::get_if<NodeHealth>(&transport.sent[transport.sent.size() - 2]);
  ASSERT_NE(told, nullptr);
  EXPECT_EQ(told->trouble, "the disk is full");
  trouble = "the disk is fuller";  // nothing new
  transport.receive(start(2, 1, "true"));
  EXPECT_EQ(transport.all<NodeHealth>().size(), 1U);
  trouble.clear();
  transport.receive(start(3, 1, "true"));
  EXPECT_EQ(transport.all<NodeHealth>().back().trouble, "");
}

TEST_F(SessionTest, RefusesOrdersOfAnOlderEpoch) {
  transport.receive(welcome(5));
  transport.receive(start(1, 4, "true"));
  EXPECT_EQ(last_report().state, InstanceState::kRefused);
  EXPECT_THAT(last_report().status_reason, HasSubstr("epoch 5 has been seen"));
  EXPECT_TRUE(agent->instances->empty());
}

TEST_F(SessionTest, AnOlderServerGetsNoSessionEvenAfterARestart) {
  transport.receive(welcome(5));
  ASSERT_TRUE(session->established());
  make_session();
  EXPECT_EQ(transport.all<Hello>().back().highest_fence->epoch, 5U);
  transport.receive(welcome(4));
  EXPECT_FALSE(session->established());
  EXPECT_FALSE(transport.connected);
}

TEST_F(SessionTest, AnotherStoreIsAcceptedOnlyWithoutAttempts) {
  transport.receive(welcome(5));
  transport.receive(start(1, 5, "exit 0"));
  ASSERT_TRUE(final_report(1));
  transport.lose("test");
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened == 2; }));
  transport.receive(welcome(1, "store-b"));
  EXPECT_FALSE(session->established());
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened == 3; }));
  Welcome forgets = welcome(5);
  forgets.forget = {{"store-a", 5, 1}};
  transport.receive(forgets);
  ASSERT_TRUE(agent->instances->empty());
  transport.lose("test");
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened == 4; }));
  transport.receive(welcome(1, "store-b"));
  EXPECT_TRUE(session->established());
  EXPECT_EQ(agent->state.seen().store_id, "store-b");
  EXPECT_EQ(agent->state.seen().epoch, 1U);
}

TEST_F(SessionTest, WelcomeStopsWhatIsNoLongerOurs) {
  transport.receive(welcome(1));
  transport.receive(start(1, 1, "sleep 600"));
  transport.lose("test");
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened == 2; }));
  ASSERT_EQ(transport.all<Hello>().back().attempts.size(), 1U);
  Welcome stops = welcome(2);
  stops.stop = {{"store-a", 2, 1}};
  transport.receive(stops);
  ASSERT_TRUE(final_report(1));
  EXPECT_EQ(last_report().stop_reason, StopReason::kOrphan);
}

TEST_F(SessionTest, ALostServerStopsNoJobAndTheEndIsReportedLater) {
  transport.receive(welcome(1));
  transport.receive(start(1, 1, "exit 6"));
  transport.lose("test");
  ASSERT_TRUE(run_until(loop, [&] { return agent->is(1, InstanceState::kExited); }));
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened >= 2; }));
  transport.lose("again");
  const int opened = transport.opened;
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened > opened; }));
  const auto hello = transport.all<Hello>().back();
  ASSERT_EQ(hello.attempts.size(), 1U);
  EXPECT_EQ(hello.attempts[0].exit_code, 6);
}

TEST_F(SessionTest, ChangesBetweenHelloAndWelcomeAreReported) {
  ASSERT_EQ(::mkfifo((dir.path() + "/fifo").c_str(), 0600), 0);
  transport.receive(welcome(1));
  transport.receive(start(1, 1, "read x < " + dir.path() + "/fifo; exit 8"));
  ASSERT_TRUE(run_until(loop, [&] { return agent->is(1, InstanceState::kRunning); }));
  transport.sent.clear();
  transport.lose("test");
  ASSERT_TRUE(run_until(loop, [&] { return !transport.all<Hello>().empty(); }));
  transport.sent.clear();
  agent->instances->stop({{"store-a", 1, 1}, StopReason::kTerminated, 0});
  ASSERT_TRUE(run_until(loop, [&] {
    return agent->is(1, InstanceState::kExited) || agent->is(1, InstanceState::kStartFailed);
  }));
  EXPECT_TRUE(transport.all<AttemptReport>().empty());
  transport.receive(welcome(1));
  ASSERT_TRUE(run_until(loop, [&] { return transport.all<AttemptReport>().size() == 1U; }));
  EXPECT_TRUE(is_final(last_report().state));
}

TEST_F(SessionTest, UnansweredHeartbeatsEndTheConnection) {
  Welcome quick = welcome(1);
  quick.heartbeat_interval_ms = 2;
  transport.receive(quick);
  ASSERT_TRUE(run_until(loop, [&] { return transport.opened == 2; }));
  EXPECT_EQ(transport.all<Heartbeat>().size(), 3U);
}

TEST_F(SessionTest, AnsweredHeartbeatsKeepIt) {
  Welcome quick = welcome(1);
  quick.heartbeat_interval_ms = 2;
  transport.receive(quick);
  ASSERT_TRUE(run_until(loop, [&] {
    const auto beats = transport.all<Heartbeat>();
    transport.receive(HeartbeatAck{beats.back().sequence});
    return beats.size() >= 10;
  }));
  EXPECT_EQ(transport.opened, 1);
}

TEST_F(SessionTest, ARefusedNodeTriesAgain) {
  transport.receive(Refused{"name is taken"});
  EXPECT_FALSE(transport.connected);
  ASSERT_TRUE(run_until(loop, [&] {
    return transport.opened == 3 || !transport.connected ||
           (transport.receive(Refused{"still"}), false);
  }));
}

}  // namespace
}  // namespace gpuq::agent
