#include "core/model/rows.h"

namespace gpuq {

bool RowChanges::empty() const {
  return classes.empty() && jobs.empty() && arrays.empty() && specs.empty() && attempts.empty() &&
         bookings.empty() && preemptions.empty() && nodes.empty() && tokens.empty() &&
         usage.empty() && !policy.has_value() && drop_classes.empty() && drop_bookings.empty() &&
         drop_nodes.empty() && drop_tokens.empty() && drop_usage.empty() && archive_jobs.empty();
}

}  // namespace gpuq
