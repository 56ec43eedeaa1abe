#pragma once
// UnaryCall: one unary call from its bytes to its answer. Request and response live on an arena
// that goes with the call; parsing is done here, so that a request that is no valid message gets an
// answer that says so. Made by gRPC's thread, finished once, by any thread.
#include <google/protobuf/arena.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <grpcpp/support/proto_buffer_reader.h>
#include <grpcpp/support/proto_buffer_writer.h>

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
 private:
  alignas(8) char first_block_[2048];
  google::protobuf::Arena arena_;  // before the messages that lie on it
  grpc::ByteBuffer* out_;

 public:
  using Request = RequestT;
  using Response = ResponseT;

  UnaryCall(grpc::ByteBuffer* out, auth::Caller who)
      : arena_(arena_options()), out_(out), caller(std::move(who)) {}

  const auth::Caller caller;
  Request& request = *google::protobuf::Arena::CreateMessage<Request>(&arena_);
  Response& response = *google::protobuf::Arena::CreateMessage<Response>(&arena_);

  /// Sends `response`. The call is gone afterwards.
  void finish() {
    bool own = false;
    Finish(grpc::GenericSerialize<grpc::ProtoBufferWriter, Response>(response, out_, &own));
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

  google::protobuf::ArenaOptions arena_options() {
    google::protobuf::ArenaOptions options;
    options.initial_block = first_block_;
    options.initial_block_size = sizeof first_block_;
    return options;
  }
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
