#include "server/rpc/agent_hub.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpuq/v1/job.pb.h"
#include "server/rpc/convert_agent.h"
#include "tests/server/fakes.h"

namespace gpuq::rpc {
namespace {

using testing::HasSubstr;

constexpr const char* kStore = "11111111-2222-4333-8444-555555555555";

class FakeLink final : public AgentLink {
 public:
  bool send(v1::ServerMessage message) override {
    if (full) return false;
    sent.push_back(std::move(message));
    return true;
  }
  void close(const Error& why) override { closed = why; }

  bool full = false;
  std::vector<v1::ServerMessage> sent;
  std::optional<Error> closed;
};

class AgentHubTest : public testing::Test {
 protected:
  AgentHubTest()
      : executor_(clock_), specs_(1 << 20), hub_(ports(), executor_, clock_, specs_, {}) {}

  AgentHubPorts ports() {
    AgentHubPorts ports;
    ports.post = [this](Command command, ReplyFn reply) {
      posted_.push_back(std::move(command));
      replies_.push_back(std::move(reply));
    };
    ports.state = [this]() -> const State& { return state_; };
    ports.identity = [] { return StoreIdentity{kStore, 3}; };
    ports.read_spec = [this](JobId job, auto done) { spec_reads_.emplace_back(job, done); };
    return ports;
  }

  static v1::Hello hello(const std::string& node = "n1", const std::string& state_dir = "dir-1") {
    v1::Hello hello;
    hello.set_node_name(node);
    hello.set_state_dir_id(state_dir);
    hello.set_boot_id("boot-1");
    hello.set_cpus(8);
    hello.set_memory_mib(1024);
    auto& device = *hello.add_devices();
    device.set_uuid("GPU-1");
    device.set_model("A10G");
    return hello;
  }

  std::shared_ptr<FakeLink> join(const v1::Hello& greeting) {
    auto link = std::make_shared<FakeLink>();
    hub_.hello(link, greeting);
    answer(Reply{});
    return link;
  }

  void answer(Result<Reply> reply) {
    ASSERT_FALSE(replies_.empty());
    ReplyFn fn = std::move(replies_.back());
    replies_.pop_back();
    fn(std::move(reply));
  }

  void put_node(const std::string& name) {
    Node node;
    node.id = NodeId(1);
    node.name = name;
    node.devices.push_back({"GPU-1", "A10G", 1, "", true, false});
    Event event;
    event.type = EventType::kNodeRegistered;
    event.changes.emplace_back(PutNode{node});
    state_.apply(event);
  }

  static StartOrder start_order() {
    StartOrder order;
    order.fence = {kStore, 3, AttemptId(9)};
    order.node = NodeId(1);
    order.job.id = JobId(7);
    order.job.name = "sft";
    order.cls.units = {{UnitId(1), Amount(1000)}};
    order.attempt.id = AttemptId(9);
    order.attempt.number = 2;
    AttemptInstance instance;
    instance.use.node = NodeId(1);
    instance.use.devices = {{0, 1000, AttemptId()}};
    instance.use.cpus = 2;
    order.attempt.instances = {instance};
    return order;
  }

  static std::string spec_bytes() {
    v1::JobSpec spec;
    spec.add_command("echo");
    spec.set_workdir("/data");
    (*spec.mutable_env())["A"] = "b";
    return spec.SerializeAsString();
  }

  template <typename Body>
  const Body* last_posted() const {
    return posted_.empty() ? nullptr : std::get_if<Body>(&posted_.back().body);
  }

  FakeClock clock_;
  FakeExecutor executor_;
  State state_;
  SpecCache specs_;
  std::vector<Command> posted_;
  std::vector<ReplyFn> replies_;
  std::vector<std::pair<JobId, std::function<void(Result<std::string>)>>> spec_reads_;
  AgentHub hub_;
};

TEST_F(AgentHubTest, WelcomesAfterTheRegistrationIsCommitted) {
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, hello());
  ASSERT_NE(last_posted<RegisterNodeCommand>(), nullptr);
  EXPECT_EQ(posted_.back().actor, "agent:n1");
  EXPECT_TRUE(link->sent.empty());
  answer(Reply{});
  ASSERT_EQ(link->sent.size(), 1U);
  const v1::Welcome& welcome = link->sent[0].welcome();
  EXPECT_EQ(welcome.server().store_id(), kStore);
  EXPECT_EQ(welcome.server().epoch(), 3U);
  EXPECT_EQ(welcome.heartbeat_interval_ms(), 5000U);
}

TEST_F(AgentHubTest, SaysWhatToAdoptStopAndForget) {
  v1::Hello greeting = hello();
  for (const int attempt : {1, 2, 3, 4}) {
    auto& status = *greeting.add_attempts();
    status.mutable_fence()->set_store_id(attempt == 4 ? "another" : kStore);
    status.mutable_fence()->set_attempt_id(attempt);
    status.set_state(v1::INSTANCE_STATE_RUNNING);
  }
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, greeting);
  EXPECT_EQ(last_posted<RegisterNodeCommand>()->instances.size(), 3U);
  Reply reply;
  reply.fenced_off = {{AttemptId(2), 0}};
  reply.forget = {{AttemptId(3), 0}};
  answer(reply);
  const v1::Welcome& welcome = link->sent.at(0).welcome();
  ASSERT_EQ(welcome.adopt_size(), 1);
  EXPECT_EQ(welcome.adopt(0).attempt_id(), 1);
  ASSERT_EQ(welcome.stop_size(), 1);
  EXPECT_EQ(welcome.stop(0).attempt_id(), 2);
  ASSERT_EQ(welcome.forget_size(), 1);
  EXPECT_EQ(welcome.forget(0).attempt_id(), 3);
}

TEST_F(AgentHubTest, ARefusedRegistrationEndsTheSession) {
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, hello());
  answer(Error{ErrorCode::kUnavailable, "read-only"});
  EXPECT_EQ(link->sent.at(0).refused().reason(), "read-only");
  EXPECT_EQ(link->closed->code, ErrorCode::kUnavailable);
  EXPECT_EQ(hub_.session_count(), 0U);
}

TEST_F(AgentHubTest, AHelloThatMakesNoSenseIsRefused) {
  v1::Hello greeting = hello();
  greeting.clear_node_name();
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, greeting);
  EXPECT_EQ(link->closed->code, ErrorCode::kInvalidArgument);
  greeting = hello();
  *greeting.add_devices() = greeting.devices(0);
  link = std::make_shared<FakeLink>();
  hub_.hello(link, greeting);
  EXPECT_THAT(link->closed->message, HasSubstr("listed twice"));
  EXPECT_TRUE(posted_.empty());
}

TEST_F(AgentHubTest, ASecondAgentOfTheNameIsRefusedWhileTheFirstLives) {
  auto first = join(hello("n1", "dir-1"));
  auto second = std::make_shared<FakeLink>();
  hub_.hello(second, hello("n1", "dir-2"));
  EXPECT_EQ(second->closed->code, ErrorCode::kAlreadyExists);
  EXPECT_FALSE(first->closed);
  // The same agent again, after a lost connection that nobody noticed, takes over.
  auto again = join(hello("n1", "dir-1"));
  EXPECT_EQ(first->closed->code, ErrorCode::kAborted);
  EXPECT_FALSE(again->closed);
}

TEST_F(AgentHubTest, OrdersWaitForTheWelcome) {
  put_node("n1");
  specs_.put(JobId(7), SharedBytes(spec_bytes()));
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, hello());
  hub_.start(start_order());
  EXPECT_TRUE(link->sent.empty());
  answer(Reply{});
  ASSERT_EQ(link->sent.size(), 2U);
  EXPECT_TRUE(link->sent[0].has_welcome());
  EXPECT_TRUE(link->sent[1].has_start());
}

TEST_F(AgentHubTest, AStartCarriesTheSpec) {
  put_node("n1");
  auto link = join(hello());
  hub_.start(start_order());
  ASSERT_EQ(spec_reads_.size(), 1U);  // not in the cache
  EXPECT_EQ(link->sent.size(), 1U);
  spec_reads_[0].second(spec_bytes());
  ASSERT_EQ(link->sent.size(), 2U);
  const v1::Start& start = link->sent[1].start();
  EXPECT_EQ(start.job_id(), 7);
  EXPECT_EQ(start.attempt_number(), 2U);
  EXPECT_EQ(start.command(0), "echo");
  EXPECT_EQ(start.working_directory(), "/data");
  EXPECT_EQ(start.environment().at("A"), "b");
  ASSERT_EQ(start.devices_size(), 1);
  EXPECT_EQ(start.devices(0).uuid(), "GPU-1");
  EXPECT_EQ(start.cpu_milli(), 2000U);
  EXPECT_TRUE(start.run_immediately());
  EXPECT_FALSE(start.has_gang());
}

TEST_F(AgentHubTest, OrdersForANodeWithoutSessionAreDropped) {
  put_node("n1");
  specs_.put(JobId(7), SharedBytes(spec_bytes()));
  hub_.start(start_order());
  hub_.stop({{kStore, 3, AttemptId(9)}, NodeId(1), 0, StopCause::kPreempted, Duration(500)});
  hub_.go({kStore, 3, AttemptId(9)}, NodeId(5), 0);
  EXPECT_TRUE(posted_.empty());
}

TEST_F(AgentHubTest, AStopNamesItsCauseAndGrace) {
  put_node("n1");
  auto link = join(hello());
  hub_.stop({{kStore, 3, AttemptId(9)}, NodeId(1), 0, StopCause::kPreempted, Duration(500)});
  const v1::Stop& stop = link->sent.at(1).stop();
  EXPECT_EQ(stop.reason(), v1::AGENT_STOP_REASON_PREEMPTED);
  EXPECT_EQ(stop.grace_ms(), 500);
  EXPECT_EQ(stop.fence().attempt_id(), 9);
}

TEST_F(AgentHubTest, AReportIsAcknowledgedOnlyWhenItIsStored) {
  auto link = join(hello());
  v1::AgentMessage message;
  auto& report = *message.mutable_report();
  report.set_report_id(77);
  report.mutable_status()->mutable_fence()->set_store_id(kStore);
  report.mutable_status()->mutable_fence()->set_attempt_id(9);
  report.mutable_status()->set_state(v1::INSTANCE_STATE_EXITED);
  report.mutable_status()->mutable_exit()->set_exit_code(3);
  hub_.message(link, message);
  const auto* command = last_posted<ReportCommand>();
  ASSERT_NE(command, nullptr);
  EXPECT_EQ(command->report.exit_code, 3);
  EXPECT_EQ(link->sent.size(), 1U);
  answer(Reply{});
  ASSERT_EQ(link->sent.size(), 2U);
  EXPECT_EQ(link->sent[1].ack_report().report_id(), 77U);
  // One that could not be stored ends the session: the next Hello says it again.
  hub_.message(link, message);
  answer(Error{ErrorCode::kUnavailable, "read-only"});
  EXPECT_TRUE(link->closed);
  EXPECT_EQ(link->sent.size(), 2U);
}

TEST_F(AgentHubTest, SilenceMakesANodeUnreachableThenDown) {
  auto link = join(hello());
  v1::AgentMessage heartbeat;
  heartbeat.mutable_heartbeat()->set_sequence(1);
  for (int i = 0; i < 10; ++i) {
    executor_.advance(Duration(20'000));
    hub_.message(link, heartbeat);
  }
  EXPECT_EQ(link->sent.back().heartbeat_ack().sequence(), 1U);
  EXPECT_EQ(last_posted<NodeLinkCommand>(), nullptr);

  executor_.advance(Duration(30'000));
  ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kUnreachable);
  EXPECT_TRUE(link->closed);
  executor_.advance(Duration(269'000));
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kUnreachable);
  executor_.advance(Duration(2'000));
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kDown);
}

TEST_F(AgentHubTest, ASilenceThatCouldNotBeStoredIsSaidAgain) {
  join(hello());
  executor_.advance(Duration(331'000));
  ASSERT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kDown);
  for (int tries = 0; tries < 3; ++tries) {
    answer(Error{ErrorCode::kUnavailable, "read-only"});
    posted_.clear();
    executor_.advance(Duration(5'000));
    ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
    EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kDown);
  }
  answer(Reply{});
  posted_.clear();
  executor_.advance(Duration(60'000));
  EXPECT_TRUE(posted_.empty());
}

TEST_F(AgentHubTest, ASilenceIsNotSaidOfANodeThatIsBack) {
  join(hello());
  executor_.advance(Duration(331'000));
  answer(Error{ErrorCode::kUnavailable, "read-only"});
  auto link = std::make_shared<FakeLink>();
  hub_.hello(link, hello());
  posted_.clear();
  executor_.advance(Duration(6'000));
  EXPECT_TRUE(posted_.empty());  // The registration is under way.
  answer(Reply{});
  executor_.advance(Duration(6'000));
  EXPECT_TRUE(posted_.empty());
}

TEST_F(AgentHubTest, ASilenceIsSaidAgainAfterARefusedRegistration) {
  join(hello());
  executor_.advance(Duration(331'000));
  answer(Error{ErrorCode::kUnavailable, "read-only"});
  hub_.hello(std::make_shared<FakeLink>(), hello());
  executor_.advance(Duration(6'000));
  answer(Error{ErrorCode::kUnavailable, "read-only"});
  posted_.clear();
  executor_.advance(Duration(6'000));
  ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kDown);
}

// Suspended, or stopped by a debugger: the silence was the server's own.
TEST_F(AgentHubTest, AServerThatStoodStillWaitsAnew) {
  auto link = join(hello());
  clock_.set(clock_.now() + Duration(400'000));
  executor_.advance(Duration(0));
  EXPECT_EQ(last_posted<NodeLinkCommand>(), nullptr);
  executor_.advance(Duration(29'000));
  EXPECT_EQ(last_posted<NodeLinkCommand>(), nullptr);
  executor_.advance(Duration(2'000));
  ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kUnreachable);
}

TEST_F(AgentHubTest, AShortLossOfTheConnectionDisturbsNothing) {
  auto link = join(hello());
  hub_.closed(link);
  executor_.advance(Duration(10'000));
  auto again = join(hello());
  executor_.advance(Duration(29'000));
  EXPECT_EQ(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_FALSE(again->closed);
}

TEST_F(AgentHubTest, AfterAStartEveryNodeHasTheFullTimeout) {
  put_node("n1");
  hub_.watch_known_nodes();
  executor_.advance(Duration(299'000));
  EXPECT_TRUE(posted_.empty());
  executor_.advance(Duration(2'000));
  ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kDown);
}

TEST_F(AgentHubTest, ANodeThatRegistersLateIsWatchedFromThen) {
  put_node("n1");
  hub_.watch_known_nodes();
  executor_.advance(Duration(250'000));
  auto link = join(hello());
  executor_.advance(Duration(31'000));
  ASSERT_NE(last_posted<NodeLinkCommand>(), nullptr);
  EXPECT_EQ(last_posted<NodeLinkCommand>()->link, NodeLink::kUnreachable);
}

TEST_F(AgentHubTest, AnAgentThatDoesNotTakeItsOrdersLosesItsSession) {
  put_node("n1");
  auto link = join(hello());
  link->full = true;
  hub_.go({kStore, 3, AttemptId(9)}, NodeId(1), 0);
  EXPECT_EQ(link->closed->code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(hub_.session_count(), 0U);
}

TEST(ConvertAgent, FinalStatesKeepWhatIsKnown) {
  v1::InstanceStatus status;
  status.mutable_fence()->set_attempt_id(5);
  status.set_state(v1::INSTANCE_STATE_EXITED);
  status.mutable_exit()->set_signal(9);
  status.mutable_exit()->set_signal_sent_before_exit(true);
  auto reported = to_reported(status);
  ASSERT_TRUE(reported);
  EXPECT_EQ(reported->exit_code, 137);
  EXPECT_TRUE(reported->signalled_before_exit);
  EXPECT_TRUE(reported->exit_known);

  status.clear_exit();
  status.set_state(v1::INSTANCE_STATE_LOST);
  EXPECT_FALSE(to_reported(status)->exit_known);
  status.set_state(v1::INSTANCE_STATE_START_FAILED);
  EXPECT_TRUE(to_reported(status)->start_failed);
  status.set_state(v1::INSTANCE_STATE_UNSPECIFIED);
  EXPECT_FALSE(to_reported(status));
}

}  // namespace
}  // namespace gpuq::rpc
