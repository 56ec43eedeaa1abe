#pragma once
// The gRPC services, one per file. Each converts, authorizes and hands over; none touches the state
// but inside Engine::query.
#include <memory>

#include "server/rpc/context.h"

namespace grpc {
class Service;
}

namespace gpuq::rpc {

std::unique_ptr<grpc::Service> make_job_service(ServiceContext& context);
std::unique_ptr<grpc::Service> make_policy_service(ServiceContext& context);
std::unique_ptr<grpc::Service> make_node_service(ServiceContext& context);
std::unique_ptr<grpc::Service> make_cluster_service(ServiceContext& context);
std::unique_ptr<grpc::Service> make_agent_service(ServiceContext& context);

}  // namespace gpuq::rpc
