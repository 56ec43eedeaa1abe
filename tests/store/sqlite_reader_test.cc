// History: specs, archived jobs and events as other threads read them.
#include "server/store/sqlite_reader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <thread>
#include <vector>

#include "server/store/archive_query.h"
#include "server/store/sqlite_store.h"
#include "tests/store/random_rows.h"
#include "tests/store/store_fixture.h"

namespace gpuq::store {
namespace {

class SqliteReaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto store = SqliteStore::open(dir_.data(), executor_);
    ASSERT_TRUE(store) << store.error().message;
    store_ = std::move(*store);
    ASSERT_TRUE(store_->load(true));
    auto reader = SqliteReader::open(store_->database_file(), 3);
    ASSERT_TRUE(reader) << reader.error().message;
    reader_ = std::move(*reader);
  }
  void commit_some(int batches) {
    for (int i = 0; i < batches; ++i) {
      CommitBatch batch = generator_.next(expected_);
      expected_.apply(batch);
      ASSERT_TRUE(commit_and_wait(*store_, executor_, std::move(batch)));
    }
  }
  /// Ids of the archived jobs for which `matches` holds, newest first.
  template <typename Matches>
  std::vector<JobId> archived_where(Matches matches) {
    std::vector<JobId> ids;
    for (const auto& [id, record] : expected_.archived) {
      if (matches(record.job)) ids.push_back(id);
    }
    std::reverse(ids.begin(), ids.end());
    return ids;
  }
  std::vector<JobId> found(const ArchiveQuery& query) {
    auto jobs = reader_->archived_jobs(query);
    EXPECT_TRUE(jobs) << jobs.error().message;
    std::vector<JobId> ids;
    for (const ArchivedJob& job : *jobs) ids.push_back(job.job.id);
    return ids;
  }

  TempDir dir_;
  PumpedExecutor executor_;
  std::unique_ptr<SqliteStore> store_;
  std::unique_ptr<SqliteReader> reader_;
  BatchGenerator generator_{21};
  ExpectedStore expected_;
};

TEST_F(SqliteReaderTest, SpecsOfLiveAndArchivedJobs) {
  commit_some(20);
  ASSERT_FALSE(expected_.archived.empty());
  ASSERT_FALSE(expected_.jobs.empty());
  for (const auto& [id, bytes] : expected_.specs) {
    auto spec = reader_->spec(id);
    ASSERT_TRUE(spec) << spec.error().message;
    EXPECT_EQ(*spec, bytes);
  }
  EXPECT_EQ(reader_->spec(JobId(99'999)).error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteReaderTest, ArchivedJobIsWhole) {
  commit_some(30);
  ASSERT_GT(expected_.archived.size(), 5U);
  for (const auto& [id, record] : expected_.archived) {
    SCOPED_TRACE(id.value);
    auto job = reader_->archived_job(id);
    ASSERT_TRUE(job) << job.error().message;
    EXPECT_EQ(job->job, record.job);
    EXPECT_EQ(job->cls.id, record.cls.id);
    EXPECT_TRUE(job->cls.same_as(record.cls));
    EXPECT_EQ(job->attempts, record.attempts);
    EXPECT_EQ(job->preemptions, record.preemptions);
    EXPECT_EQ(job->queue_name, "queue " + std::to_string(record.job.queue.value));
    EXPECT_EQ(job->share_name, "share " + std::to_string(record.job.share.value));
  }
  const JobId live = expected_.jobs.begin()->first;
  EXPECT_EQ(reader_->archived_job(live).error().code, ErrorCode::kNotFound);
}

TEST_F(SqliteReaderTest, NamesOutliveTheirRecords) {
  commit_some(30);
  const auto names = reader_->names();
  ASSERT_TRUE(names);
  for (const auto& [id, record] : expected_.archived) {
    for (const Attempt& attempt : record.attempts) {
      for (const AttemptInstance& instance : attempt.instances) {
        EXPECT_EQ(names->nodes.at(instance.use.node),
                  "node " + std::to_string(instance.use.node.value));
      }
    }
    for (const UnitRequest& unit : record.cls.units) {
      EXPECT_EQ(names->units.at(unit.unit), "unit " + std::to_string(unit.unit.value));
    }
  }
}

TEST_F(SqliteReaderTest, ArchiveIsFiltered) {
  commit_some(40);
  ASSERT_GT(expected_.archived.size(), 10U);
  const Job some = expected_.archived.rbegin()->second.job;
  ArchiveQuery query;
  query.limit = kMaxHistoryRows;
  EXPECT_EQ(found(query), archived_where([](const Job&) { return true; }));
  query.user = some.user;
  EXPECT_EQ(found(query), archived_where([&](const Job& j) { return j.user == some.user; }));
  query.states = {some.state};
  EXPECT_EQ(found(query), archived_where([&](const Job& j) {
              return j.user == some.user && j.state == some.state;
            }));
  query.states = {JobState::kSucceeded, JobState::kFailed};
  query.user.clear();
  query.queue_name = "queue " + std::to_string(some.queue.value);
  EXPECT_EQ(found(query), archived_where([&](const Job& j) { return j.queue == some.queue; }));
  query.queue_name.clear();
  query.share_name = "share " + std::to_string(some.share.value);
  EXPECT_EQ(found(query), archived_where([&](const Job& j) { return j.share == some.share; }));
  query.share_name = "no such share";
  EXPECT_TRUE(found(query).empty());
  query.share_name.clear();
  query.first = some.id;
  EXPECT_EQ(found(query), archived_where([&](const Job& j) { return j.id >= some.id; }));
  query.first = {};
  query.jobs = {some.id, JobId(123'456)};
  EXPECT_EQ(found(query), std::vector<JobId>{some.id});
  query.jobs.clear();
  query.ended_from = some.ended_at;
  EXPECT_EQ(found(query),
            archived_where([&](const Job& j) { return j.ended_at >= some.ended_at; }));
}

TEST_F(SqliteReaderTest, GlobKnowsStarAndQuestionMarkOnly) {
  commit_some(60);
  const auto named = [&](const char* glob) {
    ArchiveQuery query;
    query.limit = kMaxHistoryRows;
    query.name_glob = glob;
    return found(query);
  };
  EXPECT_EQ(named("*train*"),
            archived_where([](const Job& j) { return j.name.find("train") != std::string::npos; }));
  const auto bracketed =
      archived_where([](const Job& j) { return j.name.find("[x]") != std::string::npos; });
  EXPECT_FALSE(bracketed.empty());
  EXPECT_EQ(named("*[x]*"), bracketed);
  EXPECT_EQ(named("?"), archived_where([](const Job& j) {
              return j.name.size() == 1 || j.name == "é" || j.name == "\U0001F680";
            }));
}

TEST_F(SqliteReaderTest, PagesOfTheArchiveMeet) {
  commit_some(40);
  for (const HistoryOrder order : {HistoryOrder::kNewestFirst, HistoryOrder::kOldestFirst}) {
    ArchiveQuery query;
    query.order = order;
    query.limit = 3;
    std::vector<JobId> pages;
    for (auto page = found(query); !page.empty(); page = found(query)) {
      EXPECT_LE(page.size(), 3U);
      pages.insert(pages.end(), page.begin(), page.end());
      query.cursor = page.back();
    }
    if (order == HistoryOrder::kOldestFirst) std::reverse(pages.begin(), pages.end());
    EXPECT_EQ(pages, archived_where([](const Job&) { return true; }));
  }
}

TEST_F(SqliteReaderTest, EventsGoOnAfterAToken) {
  EXPECT_EQ(*reader_->first_event(), EventId(1));
  commit_some(30);
  EXPECT_EQ(*reader_->first_event(), EventId(1));
  EventQuery query;
  query.limit = 7;
  std::vector<Event> events;
  bool more = true;
  while (more) {
    const auto page = reader_->events(query);
    ASSERT_TRUE(page) << page.error().message;
    events.insert(events.end(), page->events.begin(), page->events.end());
    query.after = page->last;
    more = page->more;
  }
  ASSERT_EQ(events.size(), expected_.events.size());
  for (std::size_t i = 0; i < events.size(); ++i) {
    EXPECT_TRUE(same_event(events[i], expected_.events[i])) << i;
  }
  const auto end = reader_->events(query);
  ASSERT_TRUE(end);
  EXPECT_TRUE(end->events.empty());
  EXPECT_EQ(end->last, query.after);
}

TEST_F(SqliteReaderTest, EventsAreFiltered) {
  commit_some(30);
  const auto count = [&](EventQuery query, auto matches) {
    query.limit = kMaxHistoryRows;
    const auto page = reader_->events(query);
    ASSERT_TRUE(page) << page.error().message;
    EXPECT_FALSE(page->more);
    const auto wanted = std::count_if(expected_.events.begin(), expected_.events.end(), matches);
    EXPECT_GT(wanted, 0);
    EXPECT_EQ(static_cast<std::ptrdiff_t>(page->events.size()), wanted);
    EXPECT_TRUE(std::all_of(page->events.begin(), page->events.end(), matches));
    EXPECT_EQ(page->last, expected_.events.back().id);
  };
  EventQuery of_jobs;
  of_jobs.jobs = {JobId(2), JobId(4)};
  count(of_jobs, [](const Event& e) { return e.job == JobId(2) || e.job == JobId(4); });
  EventQuery of_queue;
  of_queue.queue = QueueId(2);
  count(of_queue, [](const Event& e) { return e.queue == QueueId(2); });
  EventQuery of_share;
  of_share.share = ShareId(3);
  count(of_share, [](const Event& e) { return e.share == ShareId(3); });
}

TEST_F(SqliteReaderTest, TokenBeforeWhatIsKeptIsOutOfRange) {
  CommitBatch batch;
  batch.epoch = 1;
  Event event;
  event.id = EventId(50);
  batch.events = {event};
  batch.counters.next_event = 51;
  ASSERT_TRUE(commit_and_wait(*store_, executor_, batch));
  EXPECT_EQ(*reader_->first_event(), EventId(50));
  EventQuery query;
  query.after = EventId(48);
  EXPECT_EQ(reader_->events(query).error().code, ErrorCode::kOutOfRange);
  query.after = EventId(49);
  EXPECT_EQ(reader_->events(query)->events.size(), 1U);
}

TEST_F(SqliteReaderTest, HistoryOfAJobBeginsAtItsSubmission) {
  EXPECT_EQ(*reader_->last_event_before(time_from_ms(5)), EventId(0));
  commit_some(30);
  for (const Event& event : expected_.events) {
    const auto found_id = reader_->last_event_before(event.at);
    ASSERT_TRUE(found_id);
    const auto first = std::find_if(expected_.events.begin(), expected_.events.end(),
                                    [&](const Event& other) { return other.at >= event.at; });
    EXPECT_EQ(found_id->value, first->id.value - 1);
  }
  EXPECT_EQ(*reader_->last_event_before(kNever), expected_.events.back().id);
}

TEST_F(SqliteReaderTest, ReadsGoOnWhileCommitting) {
  commit_some(5);
  std::vector<std::thread> threads;
  const JobId job(1);
  const std::string spec = expected_.specs.at(job);
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, job, &spec] {
      for (int round = 0; round < 100; ++round) {
        EXPECT_EQ(*reader_->spec(job), spec);
        EXPECT_TRUE(reader_->archived_jobs({}));
      }
    });
  }
  commit_some(20);
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace gpuq::store
