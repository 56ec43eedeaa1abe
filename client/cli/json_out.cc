#include "client/cli/json_out.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <array>
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "client/cli/format.h"

namespace gpuq::cli {

namespace {

using Json = nlohmann::ordered_json;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

bool ends_with(std::string_view text, std::string_view tail) {
  return text.size() > tail.size() && text.substr(text.size() - tail.size()) == tail;
}

bool is_time(std::string_view name) {
  static constexpr std::array<std::string_view, 7> kOthers = {
      "at_ms",        "since_ms",        "ends_by_ms",   "expected_end_ms",
      "last_seen_ms", "looked_until_ms", "not_before_ms"};
  if (ends_with(name, "_at_ms")) return true;
  return std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

/// Amounts for which -1 means "no bound".
bool may_be_unbounded(std::string_view name) {
  return name == "ceiling_milli" || name == "limit_milli";
}

std::string key_of(const FieldDescriptor& field) {
  const std::string& name = field.name();
  if (is_time(name)) return name.substr(0, name.size() - 3);
  if (ends_with(name, "_milli")) return name.substr(0, name.size() - 6);
  return name;
}

Json integer(const FieldDescriptor& field, std::int64_t value) {
  const std::string& name = field.name();
  if (is_time(name)) return value == 0 ? Json() : Json(format_rfc3339(value));
  if (ends_with(name, "_milli")) {
    if (value == -1 && may_be_unbounded(name)) return Json();
    if (value % 1000 == 0) return Json(value / 1000);
    return Json(static_cast<double>(value) / 1000.0);
  }
  return Json(value);
}

Json enum_name(const google::protobuf::EnumValueDescriptor& value) {
  if (value.number() == 0) return Json();
  const std::string& zero = value.type()->value(0)->name();
  const std::size_t prefix = zero.size() - std::string_view("UNSPECIFIED").size();
  return Json(value.name().substr(prefix));
}

Json message_json(const Message& message);

/// `index` < 0: not repeated.
Json value_json(const Message& message, const FieldDescriptor& field, int index) {
  const auto& access = *message.GetReflection();
  const bool one = index < 0;
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return integer(field, one ? access.GetInt32(message, &field)
                                : access.GetRepeatedInt32(message, &field, index));
    case FieldDescriptor::CPPTYPE_INT64:
      return integer(field, one ? access.GetInt64(message, &field)
                                : access.GetRepeatedInt64(message, &field, index));
    case FieldDescriptor::CPPTYPE_BOOL:
      return Json(one ? access.GetBool(message, &field)
                      : access.GetRepeatedBool(message, &field, index));
    case FieldDescriptor::CPPTYPE_ENUM:
      return enum_name(one ? *access.GetEnum(message, &field)
                           : *access.GetRepeatedEnum(message, &field, index));
    case FieldDescriptor::CPPTYPE_STRING:
      return Json(one ? access.GetString(message, &field)
                      : access.GetRepeatedString(message, &field, index));
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return message_json(one ? access.GetMessage(message, &field)
                              : access.GetRepeatedMessage(message, &field, index));
    default:
      return Json();
  }
}

std::string map_key(const Message& entry, const FieldDescriptor& key) {
  return entry.GetReflection()->GetString(entry, &key);
}

Json map_json(const Message& message, const FieldDescriptor& field) {
  const auto& access = *message.GetReflection();
  const auto* entry_type = field.message_type();
  nlohmann::json sorted = nlohmann::json::object();
  for (int i = 0; i < access.FieldSize(message, &field); ++i) {
    const Message& entry = access.GetRepeatedMessage(message, &field, i);
    sorted[map_key(entry, *entry_type->map_key())] =
        value_json(entry, *entry_type->map_value(), -1);
  }
  return Json(sorted);
}

Json message_json(const Message& message) {
  const auto& access = *message.GetReflection();
  const auto* type = message.GetDescriptor();
  Json object = Json::object();
  for (int i = 0; i < type->field_count(); ++i) {
    const FieldDescriptor& field = *type->field(i);
    Json& slot = object[key_of(field)];
    if (field.is_map()) {
      slot = map_json(message, field);
    } else if (field.is_repeated()) {
      slot = Json::array();
      for (int k = 0; k < access.FieldSize(message, &field); ++k) {
        slot.push_back(value_json(message, field, k));
      }
    } else if (!field.has_presence() || access.HasField(message, &field)) {
      slot = value_json(message, field, -1);
    }
  }
  return object;
}

}  // namespace

std::string to_json(const Message& message) {
  return message_json(message).dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace gpuq::cli
