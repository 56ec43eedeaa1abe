#include "client/cli/job_source.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "client/cli/job_file_spec.h"
#include "client/cli/script.h"
#include "common/runtime/files.h"

namespace gpuq::cli {

namespace {

Error usage(std::string message) { return Error{ErrorCode::kInvalidArgument, std::move(message)}; }

/// Exactly one of file, script and command.
Result<> check_source(const JobSource& source) {
  const int given = (source.file.empty() ? 0 : 1) + (source.script.empty() ? 0 : 1) +
                    (source.command.empty() ? 0 : 1);
  if (given == 0) {
    return usage("nothing to run: write -- PROGRAM [ARG...], a script, or -f JOB.yaml");
  }
  if (given > 1) {
    return usage("give one of: a command after --, a script, -f JOB.yaml; not several");
  }
  return {};
}

Result<std::string> read_script(const std::string& path) {
  auto text = read_file(path);
  if (text) return text;
  if (text.error().code == ErrorCode::kNotFound) {
    return Error{ErrorCode::kNotFound,
                 "no script '" + path + "' here; to run a program write -- " + path};
  }
  return Error{ErrorCode::kNotFound, "cannot read the script: " + text.error().message};
}

/// Fills `spec` from a script; its directives go below `options`.
Result<JobOptions> from_script(const Context& context, const JobSource& source,
                               const JobOptions& options, v1::JobSpec& spec) {
  const std::string& path = source.script.front();
  auto text = read_script(path);
  if (!text) return text.error();
  auto directives = parse_script(*text, path);
  if (!directives) return directives.error();
  for (const auto& warning : directives->warnings) {
    if (source.strict) return usage(warning);
    context.note("warning: " + warning);
  }
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  const std::vector<std::string> arguments(source.script.begin() + 1, source.script.end());
  const std::string name = failed ? path : absolute.string();
  for (auto& word : script_command(*text, name, arguments)) spec.add_command(std::move(word));
  spec.set_job_name(absolute.filename().string());
  return overlay(options, directives->options);
}

/// An absolute working directory: the present one if none is given.
Result<> complete_workdir(v1::JobSpec& spec) {
  std::error_code failed;
  const auto present = std::filesystem::current_path(failed);
  if (failed) {
    if (spec.workdir().rfind('/', 0) == 0) return {};
    return usage("the present directory is gone: give --workdir");
  }
  spec.set_workdir((present / spec.workdir()).lexically_normal().string());
  if (spec.workdir().size() > 1 && spec.workdir().back() == '/') spec.mutable_workdir()->pop_back();
  return {};
}

}  // namespace

Result<v1::JobSpec> make_job(const Context& context, const JobSource& source) {
  if (auto done = check_source(source); !done) return done.error();
  auto config = context.config();
  if (!config) return config.error();
  JobOptions options = overlay(source.options, options_from_environment(context.environment()));
  v1::JobSpec spec;
  if (!source.file.empty()) {
    auto from_file = read_job_file(source.file);
    if (!from_file) return from_file.error();
    spec = std::move(*from_file);
    if (!spec.job_queue().empty()) config->job.queue.reset();
    if (!spec.quota_share_name().empty()) config->job.share.reset();
  } else if (!source.script.empty()) {
    auto complete = from_script(context, source, options, spec);
    if (!complete) return complete.error();
    options = std::move(*complete);
  } else {
    for (const auto& word : source.command) spec.add_command(word);
  }
  options = overlay(options, config->job);
  if (auto done = apply_options(options, context.environment(), spec); !done) return done.error();
  if (auto done = complete_workdir(spec); !done) return done.error();
  if (auto done = check_spec(spec); !done) return done.error();
  return spec;
}

Result<v1::SubmitResponse> submit_job(client::Client& client, const v1::JobSpec& spec,
                                      const std::string& token) {
  v1::SubmitRequest request;
  *request.mutable_spec() = spec;
  request.set_client_token(token.empty() ? random_uuid() : token);
  auto reply = client.submit(request);
  if (!reply && reply.error().code == ErrorCode::kUnavailable &&
      client.wait_connected(Duration(3'000))) {
    reply = client.submit(request);
  }
  return reply;
}

}  // namespace gpuq::cli
