#include "client/cli/script.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <sstream>

#include "client/cli/parse.h"
#include "client/cli/values.h"
#include "core/model/array.h"

namespace gpuq::cli {

namespace {

/// Longest text that one argument of a program can be on Linux.
constexpr std::size_t kMaxArgument = 128 * 1024 - 1;

/// How one #SBATCH option is honoured. Returns words for parse_job_options; an error becomes the
/// warning.
using Translation = std::function<Result<std::vector<std::string>>(const std::string& value)>;

Translation same(const std::string& option) {
  return [option](const std::string& value) -> Result<std::vector<std::string>> {
    return std::vector<std::string>{option, value};
  };
}

Translation nothing() {
  return [](const std::string&) -> Result<std::vector<std::string>> {
    return std::vector<std::string>();
  };
}

Error cannot(std::string why) { return Error{ErrorCode::kInvalidArgument, std::move(why)}; }

/// "gpu", "gpu:2", "gpu:a100:2" or "2", "a100:2".
Result<std::vector<std::string>> gpus(std::string value) {
  if (value.rfind("gpu:", 0) == 0) value = value.substr(4);
  if (value == "gpu") value = "1";
  const auto colon = value.rfind(':');
  if (colon == std::string::npos && parse_milli(value)) {
    return std::vector<std::string>{"--gpus", value};
  }
  if (colon == std::string::npos || !parse_milli(value.substr(colon + 1))) {
    return cannot("it names no number of GPUs");
  }
  return std::vector<std::string>{"--unit", value.substr(0, colon), "--count",
                                  value.substr(colon + 1)};
}

Result<std::vector<std::string>> time_limit(const std::string& value) {
  auto time = parse_slurm_time(value);
  if (!time) return time.error();
  if (time->count() == 0) return std::vector<std::string>();  // Slurm's "no limit"
  return std::vector<std::string>{"--timeout", std::to_string(time->count() / 1000)};
}

Result<std::vector<std::string>> memory(const std::string& value) {
  if (value == "0") return std::vector<std::string>();  // Slurm's "all that the node has"
  return std::vector<std::string>{"--mem", value};
}

Result<std::vector<std::string>> one_task_a_node(const std::string& value) {
  if (value == "1") return std::vector<std::string>();
  return cannot("an instance runs one command: start the tasks from it");
}

/// "afterok:12:13,afterany:14": all of them.
Result<std::vector<std::string>> dependency(const std::string& value) {
  static const std::map<std::string, std::string> kWords = {
      {"afterok", "ok:"}, {"afterany", "any:"}, {"afternotok", "fail:"}};
  std::string list;
  std::istringstream conditions(value);
  for (std::string condition; std::getline(conditions, condition, ',');) {
    std::istringstream parts(condition);
    std::string part;
    std::getline(parts, part, ':');
    const auto word = kWords.find(part);
    if (word == kWords.end() || part.size() + 1 >= condition.size()) {
      return cannot("only afterok, afterany and afternotok with ids are understood");
    }
    while (std::getline(parts, part, ':')) {
      if (!parse_integer("", part, 1, std::numeric_limits<std::int64_t>::max())) {
        return cannot("'" + part + "' is not the id of a job");
      }
      list += (list.empty() ? "" : ",") + word->second + part;
    }
  }
  if (list.empty()) return cannot("it names no job");
  return std::vector<std::string>{"--after", list};
}

Result<std::vector<std::string>> array(const std::string& value) {
  if (auto range = parse_array(value); !range) return range.error();
  return std::vector<std::string>{"--array", value};
}

Result<std::vector<std::string>> held(const std::string&) {
  return std::vector<std::string>{"--hold"};
}

const std::map<std::string, Translation>& translations() {
  static const std::map<std::string, Translation> kTable = {
      {"job-name", same("--name")},
      {"J", same("--name")},
      {"partition", same("--queue")},
      {"p", same("--queue")},
      {"account", same("--share")},
      {"A", same("--share")},
      {"gres", gpus},
      {"gpus", gpus},
      {"G", gpus},
      {"gpus-per-node", gpus},
      {"nodes", same("--instances")},
      {"N", same("--instances")},
      {"ntasks-per-node", one_task_a_node},
      {"cpus-per-task", same("--cpus")},
      {"c", same("--cpus")},
      {"mem", memory},
      {"time", time_limit},
      {"t", time_limit},
      {"dependency", dependency},
      {"d", dependency},
      {"array", array},
      {"a", array},
      {"hold", held},
      {"H", held},
      {"chdir", same("--workdir")},
      {"D", same("--workdir")},
      {"requeue", nothing()},
      {"no-requeue",
       [](const std::string&) -> Result<std::vector<std::string>> {
         return std::vector<std::string>{"--preemption-retries", "0"};
       }},
  };
  return kTable;
}

/// Splits "--key=value", "--key value", "-k value" and "-kvalue"; several may stand in one line.
std::vector<std::pair<std::string, std::string>> options_of(const std::vector<std::string>& words) {
  std::vector<std::pair<std::string, std::string>> options;
  for (const auto& word : words) {
    if (word.rfind("--", 0) == 0) {
      const auto equals = word.find('=');
      const bool joined = equals != std::string::npos;
      options.emplace_back(word.substr(2, joined ? equals - 2 : std::string::npos),
                           joined ? word.substr(equals + 1) : "");
    } else if (word.rfind('-', 0) == 0 && word.size() > 1) {
      options.emplace_back(word.substr(1, 1), word.substr(2));
    } else if (!options.empty() && options.back().second.empty()) {
      options.back().second = word;
    }
  }
  return options;
}

/// Adds the words for one #SBATCH line, and a warning for each part that can not be honoured.
void translate(const std::string& line, const std::string& where, std::vector<std::string>& words,
               std::vector<std::string>& warnings) {
  const auto parts = split_words(line);
  if (!parts) {
    warnings.push_back(where + ": " + parts.error().message);
    return;
  }
  for (const auto& [key, value] : options_of(*parts)) {
    const std::string shown = (key.size() == 1 ? "-" : "--") + key;
    const auto found = translations().find(key);
    if (found == translations().end()) {
      warnings.push_back(where + ": " + shown + " has no counterpart in gpuq and is left out");
      continue;
    }
    auto translated = found->second(value);
    if (!translated) {
      warnings.push_back(where + ": " + shown + " is left out: " + translated.error().message);
      continue;
    }
    words.insert(words.end(), translated->begin(), translated->end());
  }
}

std::string trimmed(const std::string& line) {
  const auto from = line.find_first_not_of(" \t\r");
  if (from == std::string::npos) return "";
  return line.substr(from, line.find_last_not_of(" \t\r") - from + 1);
}

bool starts_with_word(const std::string& line, const std::string& word) {
  return line.rfind(word, 0) == 0 && line.size() > word.size() &&
         (line[word.size()] == ' ' || line[word.size()] == '\t');
}

}  // namespace

Result<std::vector<std::string>> split_words(const std::string& line) {
  std::vector<std::string> words;
  std::string word;
  bool in_word = false;
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0 && c == quote) {
      quote = 0;
    } else if (c == '\\' && quote != '\'' && i + 1 < line.size()) {
      word += line[++i];
      in_word = true;
    } else if (quote == 0 && (c == '\'' || c == '"')) {
      quote = c;
      in_word = true;
    } else if (quote == 0 && (c == ' ' || c == '\t')) {
      if (in_word) words.push_back(std::move(word));
      word.clear();
      in_word = false;
    } else {
      word += c;
      in_word = true;
    }
  }
  if (quote != 0) return cannot(std::string("the quote ") + quote + " is not closed");
  if (in_word) words.push_back(std::move(word));
  return words;
}

Result<ScriptDirectives> parse_script(const std::string& text, const std::string& name) {
  ScriptDirectives directives;
  std::vector<std::string> words;
  std::istringstream lines(text);
  std::string raw;
  for (int number = 1; std::getline(lines, raw); ++number) {
    const std::string line = trimmed(raw);
    if (line.empty()) continue;
    if (line.front() != '#') break;
    const std::string where = name + ":" + std::to_string(number);
    if (starts_with_word(line, "#SBATCH")) {
      translate(line.substr(7), where, words, directives.warnings);
    } else if (starts_with_word(line, "#GPUQ")) {
      auto parts = split_words(line.substr(5));
      if (!parts) return cannot(where + ": " + parts.error().message);
      if (auto checked = parse_job_options(*parts, where); !checked) return checked.error();
      words.insert(words.end(), parts->begin(), parts->end());
    }
  }
  auto options = parse_job_options(words, name);
  if (!options) return options.error();
  directives.options = std::move(*options);
  return directives;
}

std::vector<std::string> script_command(const std::string& text, const std::string& path,
                                        const std::vector<std::string>& arguments) {
  std::vector<std::string> interpreter = {"/bin/sh"};
  if (text.rfind("#!", 0) == 0) {
    auto words = split_words(trimmed(text.substr(2, text.find('\n') - 2)));
    if (words && !words->empty()) interpreter = std::move(*words);
  }
  const auto named = std::find_if(interpreter.rbegin(), interpreter.rend(),
                                  [](const std::string& word) { return word.rfind('-', 0) != 0; });
  const std::string program =
      named == interpreter.rend() ? "" : named->substr(named->rfind('/') + 1);
  const bool shell = program == "sh" || program == "bash" || program == "dash" ||
                     program == "ksh" || program == "zsh";
  const bool python = program.rfind("python", 0) == 0;
  std::vector<std::string> command = interpreter;
  if ((shell || python) && text.size() <= kMaxArgument) {
    command.insert(command.end(), {"-c", text});
    // Of `sh -c TEXT A B`, A is $0; of `python -c TEXT A`, A is already the first argument.
    if (shell) command.push_back(path);
  } else {
    command.push_back(path);
  }
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

}  // namespace gpuq::cli
