// PolicyService: single objects and whole documents; both go to the engine as one command.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "core/sim/preview.h"
#include "gpuq/v1/policy.grpc.pb.h"
#include "server/rpc/convert_policy.h"
#include "server/rpc/services.h"
#include "server/rpc/text_check.h"
#include "server/rpc/unary_call.h"

namespace gpuq::rpc {

namespace {

using CreateCall = UnaryCall<v1::CreatePolicyObjectRequest, v1::PolicyObject>;
using UpdateCall = UnaryCall<v1::UpdatePolicyObjectRequest, v1::PolicyObject>;
using DeleteCall = UnaryCall<v1::DeletePolicyObjectRequest, v1::DeletePolicyObjectResponse>;
using GetCall = UnaryCall<v1::GetPolicyObjectRequest, v1::PolicyObject>;
using ListCall = UnaryCall<v1::ListPolicyObjectsRequest, v1::ListPolicyObjectsResponse>;
using ApplyCall = UnaryCall<v1::ApplyPolicyRequest, v1::ApplyPolicyResponse>;
using ExportCall = UnaryCall<v1::ExportPolicyRequest, v1::PolicyDocument>;

// The first error of a single-object change, as the call's error.
Result<> verdict(const Result<Reply>& reply) {
  if (!reply) return reply.error();
  for (const PolicyIssue& issue : reply->issues) {
    if (issue.is_error) return Error{ErrorCode::kFailedPrecondition, issue.message};
  }
  return {};
}

std::int64_t version_of(const v1::PolicyObject& object) {
  switch (object.object_case()) {
    case v1::PolicyObject::kCapacityUnit:
      return object.capacity_unit().version();
    case v1::PolicyObject::kServiceEnvironment:
      return object.service_environment().version();
    case v1::PolicyObject::kSchedulingPolicy:
      return object.scheduling_policy().version();
    case v1::PolicyObject::kJobQueue:
      return object.job_queue().version();
    case v1::PolicyObject::kQuotaShare:
      return object.quota_share().version();
    case v1::PolicyObject::OBJECT_NOT_SET:
      return 0;
  }
  return 0;
}

// Sends the stored object back.
template <typename Call>
void answer_with(ServiceContext& context, Call* call, const v1::PolicyObjectRef& ref) {
  context.engine.query([call, ref](const State& state) {
    auto object = find_object(state.policy(), ref);
    if (!object) return call->finish(object.error());
    call->response = std::move(*object);
    call->finish();
  });
}

// The version is looked at before the command is queued: a change that slips in between is
// replaced.
template <typename Call>
void change_object(ServiceContext& context, Call* call, bool create, std::int64_t expected) {
  context.engine.query([&context, call, create, expected](const State& state) {
    const v1::PolicyObjectRef ref = ref_of(call->request.object());
    auto doc = to_single_doc(call->request.object());
    if (!doc) return call->finish(doc.error());
    const auto stored = find_object(state.policy(), ref);
    if (create && stored) {
      return call->finish(
          Error{ErrorCode::kAlreadyExists, "there is a " + describe(ref) + " already: update it"});
    }
    if (!create && !stored) return call->finish(stored.error());
    if (expected != 0 && version_of(*stored) != expected) {
      return call->finish(Error{ErrorCode::kAborted, describe(ref) + " was changed meanwhile: get "
                                                                     "it again"});
    }
    ApplyPolicyCommand command;
    command.doc = std::move(*doc);
    command.partial = true;
    command.must_not_exist = create;
    command.must_exist = !create;
    context.engine.post(Command{call->caller.user, std::move(command)},
                        [&context, call, ref](const Result<Reply>& reply) {
                          if (auto fine = verdict(reply); !fine) return call->finish(fine.error());
                          answer_with(context, call, ref);
                        });
  });
}

void create(ServiceContext& context, CreateCall* call) { change_object(context, call, true, 0); }

void update(ServiceContext& context, UpdateCall* call) {
  change_object(context, call, false, call->request.expected_version());
}

void answer_deleted(ServiceContext& context, DeleteCall* call) {
  context.engine.query([call](const State& state) {
    const bool gone = !find_object(state.policy(), call->request.ref());
    call->response.set_status(gone ? v1::OBJECT_STATUS_DELETED : v1::OBJECT_STATUS_DELETING);
    call->finish();
  });
}

void remove(ServiceContext& context, DeleteCall* call) {
  context.engine.query([&context, call](const State& state) {
    const v1::PolicyObjectRef& ref = call->request.ref();
    if (auto stored = find_object(state.policy(), ref); !stored) {
      return call->finish(stored.error());
    }
    ApplyPolicyCommand command;
    command.partial = true;
    const std::string name =
        ref.kind() == v1::POLICY_KIND_QUOTA_SHARE ? ref.job_queue() + "/" + ref.name() : ref.name();
    command.deletions.emplace_back(kind_word(ref.kind()), name);
    context.engine.post(Command{call->caller.user, std::move(command)},
                        [&context, call](const Result<Reply>& reply) {
                          if (auto fine = verdict(reply); !fine) return call->finish(fine.error());
                          answer_deleted(context, call);
                        });
  });
}

void get(ServiceContext& context, GetCall* call) {
  answer_with(context, call, call->request.ref());
}

void list(ServiceContext& context, ListCall* call) {
  if (*kind_word(call->request.kind()) == '\0') {
    return call->finish(invalid("kind is missing: say what kind of objects"));
  }
  context.engine.query([call](const State& state) {
    for (auto& object :
         list_objects(state.policy(), call->request.kind(), call->request.job_queue())) {
      *call->response.add_objects() = std::move(object);
    }
    call->finish();
  });
}

constexpr std::size_t kMaxAffected = 1'000;

v1::JobFate fate_on_wire(sim::JobFate fate) {
  switch (fate) {
    case sim::JobFate::kStopped:
      return v1::JOB_FATE_STOPPED;
    case sim::JobFate::kEnded:
      return v1::JOB_FATE_ENDED;
    case sim::JobFate::kStranded:
      return v1::JOB_FATE_STRANDED;
  }
  return v1::JOB_FATE_UNSPECIFIED;
}

void fill_preview(const sim::PolicyPreview& preview, v1::PolicyPreview& out) {
  out.set_jobs_in_all(static_cast<std::int64_t>(preview.jobs.size()));
  out.set_cut(preview.cut);
  out.set_jobs_left_out(preview.left_out);
  for (std::size_t i = 0; i < std::min(preview.jobs.size(), kMaxAffected); ++i) {
    const sim::AffectedJob& from = preview.jobs[i];
    v1::AffectedJob& job = *out.add_jobs();
    job.set_job_id(from.job.value);
    job.set_job_name(from.name);
    job.set_quota_share_name(from.share);
    job.set_fate(fate_on_wire(from.fate));
    job.set_reason(from.reason);
  }
}

// A dry run that the engine has nothing against: it is made in a copy, to see whom it hits.
void answer_with_preview(ServiceContext& context, ApplyCall* call, ApplyPolicyCommand command) {
  command.dry_run = false;
  auto apply = std::make_shared<Command>(Command{call->caller.user, std::move(command)});
  context.engine.query([&context, call, apply](const State& state) {
    v1::PolicyPreview& out = *call->response.mutable_preview();
    context.forecasts.run_alone(
        state, {},
        [apply, &out](sim::ForecastRun& run, const sim::ForecastLimits& limits) {
          fill_preview(sim::preview_policy(run, std::move(*apply), limits), out);
        },
        [call, &out](const Result<>& done) {
          if (!done) out.set_message(done.error().message);
          call->finish();
        });
  });
}

void apply(ServiceContext& context, ApplyCall* call) {
  const bool dry_run = call->request.dry_run();
  const bool prune = call->request.prune();
  PolicyDocResult read = to_policy_doc(call->request.document());
  if (!read.issues.empty()) {
    Reply refused;
    refused.issues = std::move(read.issues);
    fill_apply_response(refused, dry_run, prune, call->response);
    return call->finish();
  }
  ApplyPolicyCommand command;
  command.doc = std::move(read.doc);
  command.dry_run = dry_run;
  command.prune = prune;
  command.drain = call->request.drain();
  auto kept = dry_run ? std::make_shared<ApplyPolicyCommand>(command) : nullptr;
  context.engine.post(Command{call->caller.user, std::move(command)},
                      [&context, call, prune, kept](const Result<Reply>& reply) {
                        if (!reply) return call->finish(reply.error());
                        fill_apply_response(*reply, kept != nullptr, prune, call->response);
                        const bool changes =
                            call->response.changes_size() > 0 && call->response.errors().empty();
                        if (kept == nullptr || !changes) return call->finish();
                        answer_with_preview(context, call, std::move(*kept));
                      });
}

void export_policy(ServiceContext& context, ExportCall* call) {
  context.engine.query([call](const State& state) {
    call->response = to_proto(state.policy());
    call->finish();
  });
}

using Service = v1::PolicyService;
using Base = Service::WithRawCallbackMethod_Create<Service::WithRawCallbackMethod_Update<
    Service::WithRawCallbackMethod_Delete<Service::WithRawCallbackMethod_Get<
        Service::WithRawCallbackMethod_List<Service::WithRawCallbackMethod_Apply<
            Service::WithRawCallbackMethod_Export<Service::Service>>>>>>>;

class PolicyServiceImpl final : public Base {
 public:
  explicit PolicyServiceImpl(ServiceContext& context) : context_(context) {}

  using Call = grpc::CallbackServerContext;
  using Bytes = grpc::ByteBuffer;
  using Verb = auth::Verb;

  grpc::ServerUnaryReactor* Create(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kChangePolicy, create);
  }
  grpc::ServerUnaryReactor* Update(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kChangePolicy, update);
  }
  grpc::ServerUnaryReactor* Delete(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kChangePolicy, remove);
  }
  grpc::ServerUnaryReactor* Get(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadPolicy, get);
  }
  grpc::ServerUnaryReactor* List(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadPolicy, list);
  }
  grpc::ServerUnaryReactor* Apply(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kChangePolicy, apply);
  }
  grpc::ServerUnaryReactor* Export(Call* call, const Bytes* in, Bytes* out) override {
    return run_unary(context_, call, in, out, Verb::kReadPolicy, export_policy);
  }

 private:
  ServiceContext& context_;
};

}  // namespace

std::unique_ptr<grpc::Service> make_policy_service(ServiceContext& context) {
  return std::make_unique<PolicyServiceImpl>(context);
}

}  // namespace gpuq::rpc
