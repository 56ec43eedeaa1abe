#include <string>

#include "client/cli/commands.h"
#include "client/cli/format.h"
#include "client/cli/output.h"
#include "client/cli/selector.h"
#include "common/policy/units.h"

namespace gpuq::cli {

namespace {

/// "16K", "1M" or bytes.
Result<std::int64_t> parse_tail(const std::string& text) {
  std::int64_t factor = 1;
  std::string number = text;
  const auto suffix = text.empty() ? std::string::npos : std::string("KMG").find(text.back());
  if (suffix != std::string::npos) {
    for (std::size_t i = 0; i <= suffix; ++i) factor *= 1024;
    number.pop_back();
  }
  auto bytes = gpuq::parse_integer(number, 1, std::int64_t{1} << 30);
  if (!bytes) {
    return Error{ErrorCode::kInvalidArgument,
                 "--tail '" + text + "' is no size: write 4096, 16K or 1M"};
  }
  return *bytes * factor;
}

Result<OutputSource> make_source(client::Client& client, const LogsOptions& options,
                                 const Context& context) {
  auto selected = select_job(client, options.job);
  if (!selected) return selected.error();
  if (selected->matches > 1) {
    context.note("'" + options.job + "' matches " + std::to_string(selected->matches) +
                 " jobs; this is " + std::to_string(selected->job.job_id()) + ", the newest");
  }
  if (options.attempt != 0 && selected->attempt != 0 && options.attempt != selected->attempt) {
    return Error{ErrorCode::kInvalidArgument,
                 "'" + options.job + "' and --attempt name different attempts"};
  }
  if (selected->job.has_array()) {
    const std::string id = std::to_string(selected->job.job_id());
    return Error{ErrorCode::kInvalidArgument,
                 "job " + id + " is an array: name one of its members, such as " + id + "." +
                     std::to_string(selected->job.array().range().first())};
  }
  OutputSource source;
  source.job_id = selected->job.job_id();
  source.attempt =
      selected->attempt != 0 ? selected->attempt : static_cast<std::int32_t>(options.attempt);
  if (auto done = check_attempt(selected->job, source.attempt); !done) return done.error();
  source.instance = static_cast<std::int32_t>(options.instance);
  source.follow = options.follow;
  if (!options.tail.empty()) {
    auto tail = parse_tail(options.tail);
    if (!tail) return tail.error();
    source.offset = -*tail;
  }
  if (!options.follow && selected->job.attempt_count() == 0) {
    return Error{ErrorCode::kFailedPrecondition,
                 "job " + format_id(selected->job) + " has not started yet: add -f to wait"};
  }
  return source;
}

}  // namespace

int logs(Context& context, const LogsOptions& options) {
  if (auto done = check_selectors({options.job}); !done) return context.fail(done.error());
  auto client = context.client();
  if (!client) return context.fail(client.error());
  auto source = make_source(**client, options, context);
  if (!source) return context.fail(source.error());
  OutputFollower output(**client, context.terminal().out, context.terminal().err);
  const auto start = [&](v1::LogStream stream) {
    source->stream = stream;
    output.start(*source);
  };
  if (!options.only_stderr) start(v1::LOG_STREAM_STDOUT);
  if (!options.only_stdout) start(v1::LOG_STREAM_STDERR);
  auto done = output.finish();
  return done ? kDone : context.fail(done.error());
}

}  // namespace gpuq::cli
