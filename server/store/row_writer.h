#pragma once
// Writes a batch's records with prepared statements, inside the caller's transaction. Owned by the
// store, used on its writer thread. Throws Failure; the caller's transaction then rolls back.
#include <vector>

#include "core/model/rows.h"
#include "server/store/db.h"

namespace gpuq::store {

class RowWriter {
 public:
  explicit RowWriter(Connection& db);

  /// Upserts by key, then deletes, then moves `archive_jobs` to the archive.
  void write(const RowChanges& rows);
  void write(const std::vector<Event>& events);
  /// Sets time and counters, none of which goes back. False: the store's epoch is not
  /// `batch.epoch`.
  bool write_meta(const CommitBatch& batch);

 private:
  void write(const JobClass& record);
  void write(const Job& record);
  void write(const Attempt& record);
  void write(const Booking& record);
  void write(const Node& record);
  void write(const TokenRecord& record);
  void drop_booking(JobId job);
  void archive(JobId job);

  Connection& db_;
  Statement meta_;
  Statement put_class_, put_class_unit_, put_exit_rule_, cut_class_units_, cut_exit_rules_,
      drop_class_;
  Statement put_job_, put_array_, put_spec_;
  Statement put_attempt_, put_allocation_, cut_allocations_;
  Statement put_booking_, put_booking_part_, cut_booking_parts_, drop_booking_;
  Statement put_preemption_;
  Statement put_node_, put_label_, put_device_, cut_labels_, cut_devices_, drop_node_;
  Statement put_token_, drop_token_;
  Statement put_usage_, drop_usage_;
  Statement put_event_;
  std::vector<Statement> archive_;  ///< All take the job's id; the first makes archived_job's row.
};

}  // namespace gpuq::store
