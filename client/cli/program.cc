#include "client/cli/program.h"

#include <ostream>
#include <utility>
#include <variant>

#include "client/cli/commands.h"
#include "client/cli/context.h"
#include "client/cli/parse.h"
#include "core/base/text.h"

namespace gpuq::cli {

namespace {

struct Runner {
  Context& context;
  int operator()(const SubmitOptions& o) const { return submit(context, o); }
  int operator()(const RunOptions& o) const { return run(context, o); }
  int operator()(const ListOptions& o) const { return list(context, o); }
  int operator()(const ShowOptions& o) const { return show(context, o); }
  int operator()(const WhyOptions& o) const { return why(context, o); }
  int operator()(const LogsOptions& o) const { return logs(context, o); }
  int operator()(const WaitOptions& o) const { return wait(context, o); }
  int operator()(const CancelOptions& o) const { return cancel(context, o); }
  int operator()(const UpdateOptions& o) const { return update(context, o); }
  int operator()(const HoldOptions& o) const { return hold(context, o); }
  int operator()(const StatusOptions& o) const { return status(context, o); }
  int operator()(const ApplyOptions& o) const { return apply(context, o); }
  int operator()(const NodeOptions& o) const { return node(context, o); }
  int operator()(const SimulateOptions& o) const { return simulate(context, o); }
  int operator()(const VersionOptions& o) const { return print_version(context, o); }
};

/// Every word may end up in a message to the server, which takes text only.
Result<> check_words(const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (is_valid_utf8(words[i])) continue;
    return invalid("word " + std::to_string(i + 1) + " of the command line, " + quote(words[i]) +
                   ", is not valid UTF-8: gpuq takes text only");
  }
  return {};
}

/// What the user did not get to see makes a success a failure.
int finish(Context& context, int code) {
  const bool written = context.flush_output() && context.terminal().err.good();
  return code == kDone && !written ? kFailed : code;
}

}  // namespace

int run_program(std::vector<std::string> arguments, const Terminal& terminal,
                const Environment& environment) {
  Context plain(terminal, GlobalOptions(), environment);
  if (auto done = check_words(arguments); !done) return plain.fail(done.error());
  auto parsed = parse_command_line(std::move(arguments));
  if (!parsed) return plain.fail(parsed.error());
  if (const auto* help = std::get_if<HelpText>(&*parsed)) {
    terminal.out << help->text;
    return finish(plain, kDone);
  }
  const auto& invocation = std::get<Invocation>(*parsed);
  Context context(terminal, invocation.global, environment);
  const int code = std::visit(Runner{context}, invocation.command);
  return finish(context, code);
}

}  // namespace gpuq::cli
