#include "core/model/view.h"

namespace gpuq {

Duration grace_of(const StateView& view, const Job& job) {
  const JobClass& cls = view.job_class(job.cls);
  if (cls.grace) return *cls.grace;
  const Share* share = view.policy().share(job.share);
  return share != nullptr && share->def.grace ? *share->def.grace : view.default_grace();
}

}  // namespace gpuq
