#include "core/sched/ask.h"

#include "core/base/check.h"

namespace gpuq::sched {

Ask make_ask(const StateView& view, const Job& job, std::size_t n) {
  Ask ask;
  ask.job = &job;
  ask.cls = &view.job_class(job.cls);
  const UnitRequest& request = ask.cls->units.at(n);
  ask.unit = view.policy().unit(request.unit);
  GPUQ_CHECK(ask.unit != nullptr);
  ask.share = job.share;
  ask.env = view.scratch().environment(job.share);
  ask.instances = ask.cls->instances;
  ask.demand = request.count * ask.instances;
  ask.need = instance_need(*ask.cls, request, *ask.unit);
  if (job.node_losses > 0) ask.avoided = view.nodes_at_fault(job.id);
  if (ask.instances > 1 && !ask.cls->topology_label.empty()) {
    ask.topology_label = &ask.cls->topology_label;
    ask.one_domain = ask.cls->topology_required;
  }
  return ask;
}

const std::string* domain_of(const Ask& ask, const Node& node) {
  if (ask.topology_label == nullptr) return nullptr;
  const auto it = node.labels.find(*ask.topology_label);
  return it == node.labels.end() ? nullptr : &it->second;
}

Holding holding_for(const Ask& ask, Time now) {
  Holding holding;
  holding.job = ask.job->id;
  holding.share = ask.share;
  holding.unit = ask.unit->id;
  holding.demand = ask.demand;
  holding.user = ask.job->user;
  holding.priority = ask.job->priority;
  holding.preemptible = ask.cls->preemptible;
  holding.started = now;
  return holding;
}

}  // namespace gpuq::sched
