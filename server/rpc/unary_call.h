#pragma once
// UnaryCall: one unary call from its bytes to its answer. Request and response live on an arena that
// goes with the call; parsing is done here, so that a request that is no valid message gets an answer
// that says so. Made by gRPC's thread, finished once, by any thread.
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>

#include <memory>
#include <string>
#include <utility>

#include "server/auth/authorize.h"
#include "server/rpc/context.h"
#include "server/rpc/parse_error.h"
#include "server/rpc/status.h"

namespace gpuq::rpc {

template <typename RequestT, typename ResponseT>
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  using Request = RequestT;
  using Response = ResponseT;
  /// What handlers hold. The call lives until finish(), whoever holds a Ptr.
  using Ptr = UnaryCall*;

  UnaryCall(grpc::ByteBuffer* out, auth::Caller who)
      : caller(std::move(who)), arena_(options()), out_(out) {}

  const auth::Caller caller;
  Request& request = *google::protobuf::Arena::CreateMessage<Request>(arena());
  Response& response = *google::protobuf::Arena::CreateMessage<Response>(arena());

  /// Sends `response`. The call is gone afterwards.
  void finish() {
    bool own = false;
    const grpc::Status written =
        grpc::GenericSerialize<grpc::ProtoBufferWriter, Response>(response, out_, &own);
    Finish(written);
  }
  void finish(const Error& error) { Finish(to_status(error)); }
  void finish(const Result<>& result) { result ? finish() : finish(result.error()); }

  /// Parses and authorizes; false when the call was finished by it.
  bool begin(const grpc::ByteBuffer& in, auth::Verb verb) {
    grpc::ByteBuffer bytes(in);
    clear_parse_error();
    if (!grpc::GenericDeserialize<grpc::ProtoBufferReader, Request>(&bytes, &request).ok()) {
      finish(parse_error(Request::descriptor()->full_name()));
      return false;
    }
    if (auto allowed = auth::authorize(caller, verb, {}); !allowed) {
      finish(allowed.error());
      return false;
    }
    return true;
  }

 private:
  void OnDone() override { delete this; }

  google::protobuf::Arena* arena() { return &arena_; }
  google::protobuf::ArenaOptions options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = first_block_;
    options.initial_block_size = sizeof first_block_;
    return options;
  }

  alignas(8) char first_block_[2048];
  google::protobuf::Arena arena_;
  grpc::ByteBuffer* out_;
};

/// Runs `handler(context, call)` for one call.
template <typename Request, typename Response>
grpc::ServerUnaryReactor* run_unary(ServiceContext& context, grpc::CallbackServerContext* call,
                                    const grpc::ByteBuffer* in, grpc::ByteBuffer* out,
                                    auth::Verb verb,
                                    void (*handler)(ServiceContext&,
                                                    UnaryCall<Request, Response>*)) {
  auto* unary =
      new UnaryCall<Request, Response>(out, context.peers.identify(std::string(call->peer())));
  if (unary->begin(*in, verb)) handler(context, unary);
  return unary;
}

}  // namespace gpuq::rpc
