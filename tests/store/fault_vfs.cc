#include "tests/store/fault_vfs.h"

#include <sqlite3.h>

#include <mutex>
#include <optional>

namespace gpuq::store {
namespace {

/// When to fail, and the count so far.
class Plan {
 public:
  void arm(Fault fault, std::int64_t nth, bool and_all_after) {
    const std::lock_guard lock(mutex_);
    fault_ = fault;
    nth_ = nth;
    and_all_after_ = and_all_after;
    armed_ = true;
    happened_ = false;
    count_ = 0;
  }
  std::int64_t disarm() {
    const std::lock_guard lock(mutex_);
    armed_ = false;
    return count_;
  }
  std::optional<Fault> next() {
    const std::lock_guard lock(mutex_);
    if (!armed_) return std::nullopt;
    ++count_;
    if (count_ != nth_ && (count_ < nth_ || !and_all_after_)) return std::nullopt;
    happened_ = true;
    return fault_;
  }
  bool happened() {
    const std::lock_guard lock(mutex_);
    return happened_;
  }

 private:
  std::mutex mutex_;
  bool armed_ = false;
  bool happened_ = false;
  bool and_all_after_ = false;
  Fault fault_ = Fault::kIoError;
  std::int64_t nth_ = 0;
  std::int64_t count_ = 0;
};

Plan plan;
sqlite3_vfs fault_vfs;
sqlite3_vfs* real_vfs = nullptr;
sqlite3_io_methods fault_methods;

/// Our file: SQLite's header, then the real file behind it in the same memory.
struct FaultFile {
  sqlite3_file base;
  [[nodiscard]] sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

sqlite3_file* real(sqlite3_file* file) { return reinterpret_cast<FaultFile*>(file)->real(); }

int write(sqlite3_file* file, const void* data, int size, sqlite3_int64 offset) {
  const auto fault = plan.next();
  if (!fault) return real(file)->pMethods->xWrite(real(file), data, size, offset);
  if (*fault == Fault::kIoError) return SQLITE_IOERR_WRITE;
  real(file)->pMethods->xWrite(real(file), data, size / 2, offset);
  return *fault == Fault::kDiskFull ? SQLITE_FULL : SQLITE_IOERR_WRITE;
}

int sync(sqlite3_file* file, int flags) {
  if (plan.next()) return SQLITE_IOERR_FSYNC;
  return real(file)->pMethods->xSync(real(file), flags);
}

/// Methods that only pass on. SQLite calls those of version 3.
void fill_methods(sqlite3_io_methods& m) {
  using F = sqlite3_file*;
  m.iVersion = 3;
  m.xClose = [](F f) { return real(f)->pMethods->xClose(real(f)); };
  m.xRead = [](F f, void* data, int size, sqlite3_int64 at) {
    return real(f)->pMethods->xRead(real(f), data, size, at);
  };
  m.xWrite = write;
  m.xSync = sync;
  m.xTruncate = [](F f, sqlite3_int64 size) { return real(f)->pMethods->xTruncate(real(f), size); };
  m.xFileSize = [](F f, sqlite3_int64* size) {
    return real(f)->pMethods->xFileSize(real(f), size);
  };
  m.xLock = [](F f, int level) { return real(f)->pMethods->xLock(real(f), level); };
  m.xUnlock = [](F f, int level) { return real(f)->pMethods->xUnlock(real(f), level); };
  m.xCheckReservedLock = [](F f, int* out) {
    return real(f)->pMethods->xCheckReservedLock(real(f), out);
  };
  m.xFileControl = [](F f, int op, void* arg) {
    return real(f)->pMethods->xFileControl(real(f), op, arg);
  };
  m.xSectorSize = [](F f) { return real(f)->pMethods->xSectorSize(real(f)); };
  m.xDeviceCharacteristics = [](F f) { return real(f)->pMethods->xDeviceCharacteristics(real(f)); };
  m.xShmMap = [](F f, int page, int size, int extend, void volatile** out) {
    return real(f)->pMethods->xShmMap(real(f), page, size, extend, out);
  };
  m.xShmLock = [](F f, int offset, int n, int flags) {
    return real(f)->pMethods->xShmLock(real(f), offset, n, flags);
  };
  m.xShmBarrier = [](F f) { real(f)->pMethods->xShmBarrier(real(f)); };
  m.xShmUnmap = [](F f, int remove) { return real(f)->pMethods->xShmUnmap(real(f), remove); };
  m.xFetch = [](F f, sqlite3_int64 at, int size, void** out) {
    return real(f)->pMethods->xFetch(real(f), at, size, out);
  };
  m.xUnfetch = [](F f, sqlite3_int64 at, void* page) {
    return real(f)->pMethods->xUnfetch(real(f), at, page);
  };
}

int open(sqlite3_vfs*, const char* name, sqlite3_file* file, int flags, int* out_flags) {
  file->pMethods = nullptr;
  const int code = real_vfs->xOpen(real_vfs, name, real(file), flags, out_flags);
  if (real(file)->pMethods != nullptr) file->pMethods = &fault_methods;
  return code;
}

}  // namespace

void register_fault_vfs() {
  if (real_vfs != nullptr) return;
  real_vfs = sqlite3_vfs_find(nullptr);
  fill_methods(fault_methods);
  fault_vfs = *real_vfs;
  fault_vfs.zName = kFaultVfs;
  fault_vfs.pNext = nullptr;
  fault_vfs.szOsFile = static_cast<int>(sizeof(FaultFile)) + real_vfs->szOsFile;
  fault_vfs.xOpen = open;
  sqlite3_vfs_register(&fault_vfs, 0);
}

void arm_fault(Fault fault, std::int64_t nth, bool and_all_after) {
  plan.arm(fault, nth, and_all_after);
}

std::int64_t disarm_fault() { return plan.disarm(); }

bool fault_happened() { return plan.happened(); }

}  // namespace gpuq::store
