/* A stand-in for libnvidia-ml.so.1 with three devices: two linked A100s and one whose memory cannot be read. Built by the test. */
#include <stdio.h>
#include <string.h>

typedef struct {
  char bus_id_legacy[16];
  unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
} Pci;
typedef struct {
  unsigned long long total, free, used;
} Memory;

static int index_of(void* device) { return (int)((char*)device - (char*)0) - 1; }

int nvmlInit_v2(void) {
#ifdef BROKEN
  return 18;
#else
  return 0;
#endif
}
int nvmlShutdown(void) { return 0; }
const char* nvmlErrorString(int code) {
  return code == 18 ? "Driver/library version mismatch" : "GPU is lost";
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void** device) {
  *device = (char*)0 + i + 1;
  return 0;
}
int nvmlDeviceGetUUID(void* device, char* text, unsigned size) {
  snprintf(text, size, "GPU-0000000%d-aaaa-bbbb-cccc-dddddddddddd", index_of(device));
  return 0;
}
int nvmlDeviceGetName(void* device, char* text, unsigned size) {
  (void)device;
  snprintf(text, size, "NVIDIA A100-SXM4-80GB");
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, Memory* memory) {
  if (index_of(device) == 2) return 15;
  memset(memory, 0, sizeof(*memory));
  memory->total = 81920ULL << 20;
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, Pci* pci) {
  memset(pci, 0, sizeof(*pci));
  snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:0%d:00.0", index_of(device) + 1);
  return 0;
}
int nvmlDeviceGetNvLinkState(void* device, unsigned link, unsigned* on) {
  *on = index_of(device) < 2 && link < 4;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* device, unsigned link, Pci* pci) {
  (void)link;
  memset(pci, 0, sizeof(*pci));
  snprintf(pci->bus_id, sizeof(pci->bus_id), "00000000:0%d:00.0", index_of(device) == 0 ? 2 : 1);
  return 0;
}
