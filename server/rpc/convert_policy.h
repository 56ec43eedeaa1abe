#pragma once
// Policy between wire and core: whole documents and single objects, both ways. Pure.
#include <cstdint>
#include <string>
#include <vector>

#include "core/engine/command.h"
#include "core/model/policy.h"
#include "gpuq/v1/policy.pb.h"

namespace gpuq::rpc {

/// "queue", "share", ... as ApplyPolicyCommand::deletions wants them; "" for UNSPECIFIED.
const char* kind_word(v1::PolicyKind kind);
/// The reverse, UNSPECIFIED for other text.
v1::PolicyKind kind_of_word(const std::string& word);

struct PolicyDocResult {
  PolicyDoc doc;
  std::vector<PolicyIssue> issues;  ///< Errors of shape only; then `doc` is of no use.
};
/// Shares are put below their queues; a share whose queue the document does not name is an error.
PolicyDocResult to_policy_doc(const v1::PolicyDocument& document);

v1::PolicyDocument to_proto(const PolicyTables& tables);

/// A document with this one object, for a command with `partial`. A share comes inside a queue of
/// which only the name is given. kInvalidArgument.
Result<PolicyDoc> to_single_doc(const v1::PolicyObject& object);

/// Kind and name of an object.
v1::PolicyObjectRef ref_of(const v1::PolicyObject& object);
/// "queue training", "share training/research": for messages.
std::string describe(const v1::PolicyObjectRef& ref);
/// kNotFound; kInvalidArgument for a ref without kind, name or (a share) queue.
Result<v1::PolicyObject> find_object(const PolicyTables& tables, const v1::PolicyObjectRef& ref);
/// All of a kind by name; shares only of `queue` unless it is "".
std::vector<v1::PolicyObject> list_objects(const PolicyTables& tables, v1::PolicyKind kind,
                                           const std::string& queue);

/// The engine's lines and findings ("share training/a: cap a100 8 -> 4") as messages.
void fill_apply_response(const Reply& reply, bool dry_run, bool prune,
                         v1::ApplyPolicyResponse& out);

}  // namespace gpuq::rpc
