#include "client/cli/job_source.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "client/cli/job_file_spec.h"
#include "client/cli/script.h"
#include "common/runtime/files.h"

namespace gpuq::cli {

namespace {

/// Exactly one of file, script and command.
Result<> check_source(const JobSource& source) {
  const int given =
      (source.file ? 1 : 0) + (source.script.empty() ? 0 : 1) + (source.command.empty() ? 0 : 1);
  if (given == 0) {
    return invalid("nothing to run: write -- PROGRAM [ARG...], a script, or -f JOB.yaml");
  }
  if (given > 1) {
    return invalid("give one of: a command after --, a script, -f JOB.yaml; not several");
  }
  return {};
}

Result<std::string> read_script(const std::string& path) {
  auto text = read_file(path);
  if (text) return text;
  std::error_code ignored;
  if (std::filesystem::status(path, ignored).type() == std::filesystem::file_type::not_found) {
    return Error{ErrorCode::kNotFound,
                 "no script '" + path + "' here; to run a program write -- " + path};
  }
  return invalid(text.error().message);
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
    if (source.strict) return invalid(warning);
    context.note("warning: " + warning);
  }
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  const std::vector<std::string> arguments(source.script.begin() + 1, source.script.end());
  const std::string name = failed ? path : absolute.string();
  const auto command = script_command(*text, name, arguments);
  if (std::find(command.begin(), command.end(), *text) == command.end()) {
    context.note("warning: the job keeps only the path of " + path +
                 ": the file is read when the job starts, on the node where it runs");
  }
  for (const auto& word : command) spec.add_command(word);
  spec.set_job_name(absolute.filename().string());
  return overlay(options, directives->options);
}

/// An absolute working directory: the present one if none is given.
Result<> complete_workdir(v1::JobSpec& spec) {
  std::error_code failed;
  const auto present = std::filesystem::current_path(failed);
  if (failed) {
    if (spec.workdir().rfind('/', 0) == 0) return {};
    return invalid("the present directory is gone: give --workdir");
  }
  spec.set_workdir((present / spec.workdir()).lexically_normal().string());
  if (spec.workdir().size() > 1 && spec.workdir().back() == '/') spec.mutable_workdir()->pop_back();
  return {};
}

/// The names in a job file's dependencies are asked of the server.
Result<> resolve(Context& context, const std::vector<JobDependency>& depends_on,
                 v1::JobSpec& spec) {
  if (depends_on.empty()) return {};
  auto client = context.client();
  if (!client) return client.error();
  return resolve_dependencies(**client, depends_on, spec);
}

/// Every layer over what a job file has said, if there is one.
Result<> complete(const Context& context, const JobSource& source, v1::JobSpec& spec) {
  auto config = context.config();
  if (!config) return config.error();
  JobOptions options = overlay(source.options, options_from_environment(context.environment()));
  if (!spec.job_queue().empty()) config->job.queue.reset();
  if (!spec.quota_share_name().empty()) config->job.share.reset();
  if (!source.script.empty()) {
    auto with_directives = from_script(context, source, options, spec);
    if (!with_directives) return with_directives.error();
    options = std::move(*with_directives);
  }
  for (const auto& word : source.command) spec.add_command(word);
  options = overlay(options, config->job);
  if (auto done = apply_options(options, context.environment(), spec); !done) return done.error();
  if (auto done = complete_workdir(spec); !done) return done.error();
  return check_spec(spec);
}

}  // namespace

int make_job(Context& context, const JobSource& source, v1::JobSpec& spec) {
  if (auto done = check_source(source); !done) return context.fail(done.error());
  if (source.file) {
    auto from_file = read_job_file(*source.file);
    if (!from_file) return context.fail_each(from_file.error());
    spec = std::move(from_file->spec);
    if (auto done = resolve(context, from_file->depends_on, spec); !done) {
      return context.fail(done.error());
    }
  }
  auto done = complete(context, source, spec);
  return done ? kDone : context.fail(done.error());
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
