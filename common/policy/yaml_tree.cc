#include "common/policy/yaml_tree.h"

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <exception>
#include <sstream>

#include "core/base/text.h"

namespace gpuq {

namespace {

constexpr std::size_t kMaxDepth = 64;

FilePosition position(const YAML::Mark& mark) {
  return mark.is_null() ? FilePosition{} : FilePosition{mark.line + 1, mark.column + 1};
}

/// Thrown by the builder through the parser, caught in parse_yaml.
struct Refused : std::exception {
  Refused(FilePosition where, std::string what) : at(where), message(std::move(what)) {}
  FilePosition at;
  std::string message;
};

/// Receives the parser's events and builds the tree. Open containers form a path from the root.
class TreeBuilder : public YAML::EventHandler {
 public:
  YamlNode root;

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    add(YamlNode{YamlNode::Kind::kNull, true, position(mark), {}, {}, {}});
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    throw Refused(position(mark), "aliases (*name) are not supported: write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    add(YamlNode{YamlNode::Kind::kScalar, tag == "?", position(mark), value, {}, {}});
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kList);
  }
  void OnSequenceEnd() override { open_.pop_back(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(mark, tag, anchor, YamlNode::Kind::kMap);
  }
  void OnMapEnd() override { open_.pop_back(); }

 private:
  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor == YAML::NullAnchor) return;
    throw Refused(position(mark), "anchors (&name) are not supported: write the values out");
  }
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (tag.empty() || tag == "?" || tag == "!") return;
    throw Refused(position(mark), fmt::format("tags ({}) are not supported", quote(tag)));
  }

  void open(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YamlNode::Kind kind) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (open_.size() == kMaxDepth) throw Refused(position(mark), "nested too deeply");
    // A pointer into a parent's items stays good: while a child is open its parent does not grow.
    open_.push_back(add(YamlNode{kind, true, position(mark), {}, {}, {}}));
  }

  YamlNode* add(YamlNode node) {
    if (open_.empty()) {
      root = std::move(node);
      return &root;
    }
    YamlNode& parent = *open_.back();
    if (parent.kind == YamlNode::Kind::kMap && parent.keys.size() == parent.items.size()) {
      if (node.kind != YamlNode::Kind::kScalar)
        throw Refused(node.at, "a key must be a plain word; is a bracket left open?");
      parent.keys.push_back({std::move(node.scalar), node.at});
      return nullptr;
    }
    parent.items.push_back(std::move(node));
    return &parent.items.back();
  }

  std::vector<YamlNode*> open_;
};

/// Line and column of byte `offset`.
FilePosition position_of_byte(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t line_start =
      before.rfind('\n') == std::string_view::npos ? 0 : before.rfind('\n') + 1;
  return {static_cast<int>(std::ranges::count(before, '\n')) + 1,
          static_cast<int>(offset - line_start) + 1};
}

void collect_positions(const YamlNode& node, const std::string& path, FilePosition at,
                       std::map<std::string, FilePosition>& out) {
  out.emplace(path, at);
  for (std::size_t i = 0; i < node.items.size(); ++i) {
    const YamlNode& item = node.items[i];
    if (node.kind == YamlNode::Kind::kList) {
      collect_positions(item, fmt::format("{}[{}]", path, i), item.at, out);
    } else {
      const std::string& key = node.keys[i].name;
      collect_positions(item, path.empty() ? key : path + "." + key, node.keys[i].at, out);
    }
  }
}

}  // namespace

std::optional<YamlNode> parse_yaml(std::string_view text, std::vector<FileIssue>& issues) {
  const auto refuse = [&](FilePosition at, std::string message) {
    issues.push_back({at.line, at.column, "", std::move(message), true});
    return std::nullopt;
  };
  if (text.size() > kMaxPolicyFileBytes) {
    return refuse({}, fmt::format("larger than {} MiB", kMaxPolicyFileBytes >> 20));
  }
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    return refuse(position_of_byte(text, bad), "is not valid UTF-8");
  }
  if (const std::size_t nul = text.find('\0'); nul != std::string_view::npos) {
    return refuse(position_of_byte(text, nul), "holds a zero byte");
  }
  TreeBuilder builder;
  try {
    std::istringstream in{std::string(text)};
    YAML::Parser parser(in);
    if (!parser.HandleNextDocument(builder)) return refuse({}, "is empty");
    TreeBuilder second;
    if (parser.HandleNextDocument(second)) {
      return refuse(second.root.at, "holds more than one document: put each in a file of its own");
    }
  } catch (const Refused& refused) {
    return refuse(refused.at, refused.message);
  } catch (const YAML::Exception& broken) {
    return refuse(position(broken.mark), fmt::format("is not valid YAML: {}", broken.msg));
  } catch (const std::exception& broken) {
    return refuse({}, fmt::format("is not valid YAML: {}", broken.what()));
  }
  return std::move(builder.root);
}

std::map<std::string, FilePosition> yaml_positions(const YamlNode& root) {
  std::map<std::string, FilePosition> positions;
  collect_positions(root, "", root.at, positions);
  return positions;
}

FilePosition find_position(const std::map<std::string, FilePosition>& positions, std::string path) {
  for (;;) {
    if (const auto it = positions.find(path); it != positions.end()) return it->second;
    const std::size_t cut = path.find_last_of(".[");
    if (cut == std::string::npos) break;
    path.resize(cut);
  }
  const auto root = positions.find("");
  return root != positions.end() ? root->second : FilePosition{};
}

}  // namespace gpuq
