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
  return ask;
}

}  // namespace gpuq::sched
