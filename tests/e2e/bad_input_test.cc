// What a person can get wrong: one line on standard error that names the value, the right exit
// status, and nothing changed on the server.
#include <gmock/gmock.h>

#include <algorithm>

#include "tests/e2e/cluster.h"
#include "tests/e2e/jobs.h"

namespace gpuq::e2e {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

struct Case {
  const char* name;
  Words words;  ///< "@file" stands for the file with `text`.
  int code;
  const char* part;  ///< Of the message.
  const char* text = "";
};

constexpr const char* kNewPolicy = "capacity_units: [{name: gpu, gpu_model: A10G, gpus: 1}]\n";

const Case kCases[] = {
    {"queue", {"submit", "-q", "nowhere", "--", "true"}, 3, "nowhere"},
    {"share", {"submit", "-q", "q", "-s", "nobody", "--", "true"}, 3, "nobody"},
    {"unit", {"submit", "-q", "q", "-s", "team", "-u", "h200", "--", "true"}, 3, "h200"},
    {"zero gpus", {"submit", "--gpus", "0", "--", "true"}, 2, "--gpus"},
    {"negative gpus", {"submit", "--gpus", "-2", "--", "true"}, 2, "--gpus"},
    {"huge gpus", {"submit", "--gpus", "99999999999999999999", "--", "true"}, 2, "--gpus"},
    {"zero instances", {"submit", "--instances", "0", "--", "true"}, 2, "--instances"},
    {"negative instances", {"submit", "--instances", "-1", "--", "true"}, 2, "--instances"},
    {"huge instances", {"submit", "--instances", "4000000000", "--", "true"}, 2, "--instances"},
    {"zero count", {"submit", "-u", "gpu", "--count", "0", "--", "true"}, 2, "--count"},
    {"text for a number", {"submit", "--gpus", "many", "--", "true"}, 2, "many"},
    {"priority", {"submit", "--priority", "10000", "--", "true"}, 2, "--priority"},
    {"negative priority", {"submit", "--priority", "-1", "--", "true"}, 2, "--priority"},
    {"time", {"submit", "--timeout", "soon", "--", "true"}, 2, "soon"},
    {"memory", {"submit", "--mem", "16X", "--", "true"}, 2, "16X"},
    {"huge count",
     {"submit", "-u", "gpu", "--count", "9000000000000000", "--", "true"},
     2,
     "--count"},
    {"invalid UTF-8", {"submit", "--", "echo", "\xff\xfe"}, 2, "UTF-8"},
    {"invalid UTF-8 in the name", {"submit", "--name", "a\xff", "--", "true"}, 2, "UTF-8"},
    {"no command", {"submit"}, 2, "nothing to run"},
    {"unknown option", {"submit", "--gpu-s", "1", "--", "true"}, 2, "--gpu-s"},
    {"no script", {"submit", "no-such-script"}, 3, "no-such-script"},
    {"no job file", {"submit", "-f", "none.yaml"}, 3, "none.yaml"},
    {"job file is no YAML", {"submit", "-f", "@file"}, 2, "file.yaml:", "command: [true\n"},
    {"unknown key in a job file", {"submit", "-f", "@file"}, 2, "comand", "comand: [\"true\"]\n"},
    {"wrong type in a job file",
     {"submit", "-f", "@file"},
     2,
     "priority",
     "command: [\"true\"]\npriority: high\n"},
    {"no policy file", {"apply", "-f", "none.yaml"}, 3, "none.yaml"},
    {"policy is no YAML", {"apply", "-f", "@file"}, 2, "file.yaml:", "job_queues: [\n"},
    {"unknown key in a policy",
     {"apply", "-f", "@file"},
     2,
     "gpu_modell",
     "capacity_units: [{name: x, gpu_modell: A10G, gpus: 1}]\n"},
    {"wrong type in a policy",
     {"apply", "-f", "@file"},
     2,
     "gpus",
     "capacity_units: [{name: x, gpu_model: A10G, gpus: many}]\n"},
    {"show", {"show", "4711"}, 3, "4711"},
    {"why", {"why", "4711"}, 3, "4711"},
    {"logs", {"logs", "4711"}, 3, "4711"},
    {"wait", {"wait", "4711"}, 3, "4711"},
    {"cancel", {"cancel", "4711"}, 3, "4711"},
    {"update", {"update", "4711", "--priority", "1"}, 3, "4711"},
    {"job id zero", {"show", "0"}, 2, "'0'"},
    {"job word", {"show", "seventeen"}, 2, "seventeen"},
    {"node", {"node", "show", "nowhere"}, 3, "nowhere"},
    {"queue of status", {"status", "-q", "nowhere"}, 3, "nowhere"},
    {"command", {"frobnicate"}, 2, "frobnicate"},
};

class BadInputTest : public ClusterTest {
 protected:
  void SetUp() override {
    cluster_.start(1);
    cluster_.apply(one_share_policy(1));
    const auto id = cluster_.submit_script({"-q", "q", "-s", "team", "-u", "gpu"}, "true");
    ASSERT_TRUE(cluster_.reaches(id, v1::JOB_STATE_SUCCEEDED));
  }

  /// Jobs, policy and the number of the newest event.
  std::string everything() {
    std::string text = cluster_.gpuq({"history", "-a", "--json"}).out;
    text += cluster_.gpuq({"ls", "-a", "--json"}).out;
    auto policy = cluster_.client().export_policy();
    EXPECT_TRUE(policy);
    return text + (policy ? policy->Utf8DebugString() : "");
  }

  static void expect_refused(const Output& output, int code, const std::string& part) {
    EXPECT_EQ(output.code, code) << output.out << output.err;
    EXPECT_THAT(output.err, StartsWith("gpuq: "));
    EXPECT_THAT(output.err, HasSubstr(part));
    EXPECT_EQ(lines_of(output.err).size(), 1U) << output.err;
    EXPECT_LT(output.err.size(), 500U);
    EXPECT_EQ(output.out, "");
  }
};

TEST_F(BadInputTest, TableOfMistakes) {
  const std::string before = everything();
  for (const Case& one : kCases) {
    SCOPED_TRACE(one.name);
    Words words = one.words;
    std::replace(words.begin(), words.end(), std::string("@file"),
                 cluster_.write("file.yaml", one.text));
    expect_refused(cluster_.gpuq(words), one.code, one.part);
  }
  EXPECT_EQ(everything(), before);
}

TEST_F(BadInputTest, CommandOfTenMegabytes) {
  const std::string before = everything();
  // A command line can not carry it, a file can.
  const std::string word(100'000, 'x');
  std::string text = "command:\n  - echo\n";
  for (int i = 0; i < 105; ++i) text += "  - " + word + "\n";
  expect_refused(cluster_.gpuq({"submit", "-f", cluster_.write("big.yaml", text)}), 2, "big.yaml");
  v1::SubmitRequest request;
  request.mutable_spec()->set_workdir("/");
  request.mutable_spec()->add_command("echo");
  for (int i = 0; i < 105; ++i) request.mutable_spec()->add_command(word);
  auto reply = cluster_.client().submit(request);
  ASSERT_FALSE(reply);
  EXPECT_EQ(reply.error().code, ErrorCode::kInvalidArgument) << reply.error().message;
  EXPECT_EQ(everything(), before);
  EXPECT_EQ(cluster_.gpuq({"status"}).code, 0);
}

TEST_F(BadInputTest, ServerDoesNotTrustItsClients) {
  const std::string before = everything();
  const auto refused = [&](const std::function<void(v1::JobSpec&)>& spoil) {
    v1::SubmitRequest request;
    auto& spec = *request.mutable_spec();
    spec.set_job_queue("q");
    spec.set_quota_share_name("team");
    spec.mutable_resources()->add_capacity_units("gpu");
    spec.set_workdir("/");
    spec.add_command("true");
    spoil(spec);
    auto reply = cluster_.client().submit(request);
    EXPECT_FALSE(reply) << request.Utf8DebugString();
    if (reply) return;
    EXPECT_TRUE(reply.error().code == ErrorCode::kInvalidArgument ||
                reply.error().code == ErrorCode::kOutOfRange ||
                reply.error().code == ErrorCode::kNeverFits)
        << to_string(reply.error().code) << ": " << reply.error().message;
  };
  refused([](v1::JobSpec& s) { s.clear_command(); });
  refused([](v1::JobSpec& s) { s.set_workdir("relative"); });
  refused([](v1::JobSpec& s) { s.set_scheduling_priority(-1); });
  refused([](v1::JobSpec& s) { s.mutable_resources()->set_instances(0); });
  refused([](v1::JobSpec& s) { s.mutable_resources()->set_instances(-5); });
  refused([](v1::JobSpec& s) { s.mutable_resources()->set_count_milli(0); });
  refused([](v1::JobSpec& s) { s.mutable_resources()->set_count_milli(INT64_MAX); });
  refused([](v1::JobSpec& s) { s.mutable_resources()->set_cpus(-1); });
  refused([](v1::JobSpec& s) { s.mutable_retry_strategy()->set_attempts(99); });
  refused([](v1::JobSpec& s) { s.set_attempt_duration_seconds(-1); });
  refused(
      [](v1::JobSpec& s) { s.set_exit_zero_after_stop(static_cast<v1::ExitZeroAfterStop>(9)); });
  refused([](v1::JobSpec& s) {
    s.mutable_retry_strategy()->add_evaluate_on_exit()->set_on_exit_code("1");
  });
  EXPECT_EQ(everything(), before);
}

TEST_F(BadInputTest, SameTokenWithAnotherBody) {
  const Words first = {"submit", "--client-token", "t", "-q", "q", "-s", "team", "-u", "gpu", "--",
                       "true"};
  Words second = first;
  second.back() = "false";
  const Output one = cluster_.gpuq(first);
  EXPECT_EQ(one.code, 0) << one.err;
  EXPECT_EQ(cluster_.gpuq(first).out, one.out);
  expect_refused(cluster_.gpuq(second), 4, "token");
}

TEST_F(BadInputTest, NoServer) {
  cluster_.kill_server();
  for (const Words& words : {Words{"status"}, Words{"submit", "--", "true"}, Words{"ls"},
                             Words{"apply", "-f", cluster_.write("p.yaml", kNewPolicy)}}) {
    expect_refused(cluster_.gpuq(words), 6, cluster_.address());
  }
  expect_refused(cluster_.gpuq({"status", "--server", "not an address"}), 2, "not an address");
}

}  // namespace
}  // namespace gpuq::e2e
