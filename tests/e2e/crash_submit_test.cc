// kill -9 of the server while submissions are under way: what was acknowledged is there afterwards,
// what was not is submitted again under its token, and every job runs exactly once.
#include <gmock/gmock.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <set>
#include <thread>

#include "tests/e2e/cluster.h"

namespace gpuq::e2e {
namespace {

constexpr int kJobs = 1000;
constexpr int kThreads = 8;

class CrashSubmitTest : public ClusterTest {
 protected:
  v1::SubmitRequest request(int number) const {
    v1::SubmitRequest request;
    request.set_client_token("token-" + std::to_string(number));
    auto& spec = *request.mutable_spec();
    spec.set_workdir(cluster_.work());
    for (const char* word : {"sh", "-c", "echo $GPUQ_JOB_ID >> ran"}) spec.add_command(word);
    return request;
  }

  /// Submits every kThreads-th job until each is acknowledged, over all crashes. Notes what was
  /// acknowledged at the first try.
  void submit_some(int first) {
    for (int number = first; number < kJobs; number += kThreads) {
      const auto wanted = request(number);
      auto reply = cluster_.client().submit(wanted);
      while (!reply && reply.error().code == ErrorCode::kUnavailable) {
        ++retried_;
        cluster_.client().wait_connected(Duration(1'000));
        reply = cluster_.client().submit(wanted);
      }
      const std::lock_guard lock(mutex_);
      ASSERT_TRUE(reply) << reply.error().message;
      acknowledged_[number] = reply->job_id();
      ++count_;
    }
  }

  std::vector<v1::JobSummary> all_jobs() {
    std::vector<v1::JobSummary> jobs;
    v1::ListJobsRequest list;
    list.set_page_size(1000);
    do {
      auto page = cluster_.client().list_jobs(list);
      EXPECT_TRUE(page) << page.error().message;
      if (!page) break;
      jobs.insert(jobs.end(), page->jobs().begin(), page->jobs().end());
      list.set_page_token(page->next_page_token());
    } while (!list.page_token().empty());
    return jobs;
  }

  std::mutex mutex_;
  std::map<int, std::int64_t> acknowledged_;
  std::atomic<int> count_ = 0;
  std::atomic<int> retried_ = 0;
};

TEST_F(CrashSubmitTest, NothingIsLostAndNothingRunsTwice) {
  NodeOptions node;
  node.devices = "none";
  node.cpus = 16;
  cluster_.start(1, node);
  (void)cluster_.client();
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back([this, i] { submit_some(i); });
  for (const int at : {kJobs / 4, kJobs / 2, 3 * kJobs / 4}) {
    EXPECT_TRUE(eventually([&] { return count_ >= at; })) << count_ << " acknowledged";
    cluster_.kill_server();
    cluster_.start_server();
  }
  for (auto& thread : threads) thread.join();
  ASSERT_EQ(acknowledged_.size(), static_cast<std::size_t>(kJobs));
  EXPECT_GT(retried_, 0);

  std::set<std::int64_t> ids;
  for (const auto& [number, id] : acknowledged_) ids.insert(id);
  EXPECT_EQ(ids.size(), static_cast<std::size_t>(kJobs)) << "a number was given twice";
  for (int number = 0; number < kJobs; number += 37) {
    auto again = cluster_.client().submit(request(number));
    ASSERT_TRUE(again) << again.error().message;
    EXPECT_EQ(again->job_id(), acknowledged_[number]);
  }

  EXPECT_TRUE(cluster_.has_lines("ran", kJobs));
  const auto ended = [](const v1::JobSummary& job) {
    return job.state() == v1::JOB_STATE_SUCCEEDED;
  };
  std::vector<v1::JobSummary> jobs;
  EXPECT_TRUE(eventually([&] {
    jobs = all_jobs();
    return std::all_of(jobs.begin(), jobs.end(), ended);
  }));
  ASSERT_EQ(jobs.size(), static_cast<std::size_t>(kJobs)) << "doubles or losses";
  for (const auto& job : jobs) {
    EXPECT_EQ(job.attempt_count(), 1) << cluster_.job(job.job_id()).Utf8DebugString();
    EXPECT_EQ(ids.count(job.job_id()), 1U) << job.job_id();
  }
  Words ran = cluster_.lines("ran");
  std::sort(ran.begin(), ran.end());
  EXPECT_EQ(std::unique(ran.begin(), ran.end()), ran.end()) << "a job ran twice";
}

}  // namespace
}  // namespace gpuq::e2e
