/* A libcuda.so.1 without a GPU. It is compiled against NVIDIA's own cuda.h, so that the names, the prototypes and the
   layouts are the real ones. Memory is the host's; the kernels `add` and `softmax` of the tests compute; every call is
   written to a log. The variables STUB_FAIL (a function's name) and STUB_CODE make a function fail, STUB_VERSION and
   STUB_ARCHITECTURE (such as 90) say what driver and GPU there are. */
#include <cuda.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char text[1 << 20];
static size_t end;

static CUresult said(const char *function, const char *format, ...) {
  va_list list;
  va_start(list, format);
  end += snprintf(text + end, sizeof text - end, "%s ", function + 2);
  end += vsnprintf(text + end, sizeof text - end, format, list);
  end += snprintf(text + end, sizeof text - end, "\n");
  va_end(list);
  const char *failing = getenv("STUB_FAIL");
  return failing && !strcmp(failing, function) ? (CUresult)atoi(getenv("STUB_CODE")) : CUDA_SUCCESS;
}

const char *stub_log(void) { return text; }

static int number(const char *name, int otherwise) {
  const char *value = getenv(name);
  return value ? atoi(value) : otherwise;
}

/* ---- work, done or recorded ---- */

typedef struct Work {
  char kind; /* u, d, c: a copy; f: a fill; l: a launch */
  void *target;
  const void *source;
  size_t size;
  char name[64];
  unsigned rows;
  unsigned char values[16][8];
  struct Work *next;
} Work;

typedef struct { Work *first, **last; int recording; } Stream;

static void act(const Work *work) {
  void *p[16];
  int n = 0;
  for (int i = 0; i < 16; i++) memcpy(&p[i], work->values[i], 8);
  switch (work->kind) {
  case 'u': case 'd': case 'c': memcpy(work->target, work->source, work->size); break;
  case 'f': memset(work->target, *(const unsigned char *)&work->rows, work->size); break;
  default:
    if (!strcmp(work->name, "add")) {
      memcpy(&n, work->values[3], 4);
      for (int i = 0; i < n; i++) ((float *)p[2])[i] = ((float *)p[0])[i] + ((float *)p[1])[i];
    } else if (!strcmp(work->name, "softmax")) {
      for (unsigned r = 0; r < work->rows; r++) {
        const float *x = (float *)p[0] + 96 * r;
        float *o = (float *)p[1] + 96 * r, most = -INFINITY, sum = 0;
        for (int i = 0; i < 96; i++) most = fmaxf(most, x[i]);
        for (int i = 0; i < 96; i++) sum += o[i] = expf(x[i] - most);
        for (int i = 0; i < 96; i++) o[i] /= sum;
      }
    }
  }
}

static CUresult queue(CUstream handle, Work work) {
  Stream *stream = (Stream *)handle;
  if (!stream || !stream->recording) {
    act(&work);
    return CUDA_SUCCESS;
  }
  Work *kept = malloc(sizeof work);
  *kept = work;
  kept->next = NULL;
  *stream->last = kept;
  stream->last = &kept->next;
  return CUDA_SUCCESS;
}

/* ---- the driver ---- */

CUresult cuInit(unsigned flags) { return said("cuInit", "%u", flags); }
CUresult cuDriverGetVersion(int *version) {
  *version = number("STUB_VERSION", CUDA_VERSION);
  return said("cuDriverGetVersion", "");
}
CUresult cuDeviceGet(CUdevice *device, int ordinal) {
  *device = ordinal + 40;
  return said("cuDeviceGet", "%d", ordinal);
}
CUresult cuDeviceGetName(char *name, int length, CUdevice device) {
  snprintf(name, length, "Stub %d", device);
  return said("cuDeviceGetName", "%d", device);
}
CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
  int architecture = number("STUB_ARCHITECTURE", 90);
  *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? architecture / 10
           : attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? architecture % 10
                                                                       : -1;
  return said("cuDeviceGetAttribute", "%d", device);
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
  *context = (CUcontext)0x1000;
  return said("cuDevicePrimaryCtxRetain", "%d", device);
}
CUresult cuCtxSetCurrent(CUcontext context) { return context == (CUcontext)0x1000 ? 0 : CUDA_ERROR_INVALID_CONTEXT; }
CUresult cuGetErrorName(CUresult code, const char **name) {
  *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult code, const char **name) {
  *name = code == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "an error";
  return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(size_t *free_, size_t *total) {
  *free_ = 1000, *total = 5000;
  return said("cuMemGetInfo", "");
}
CUresult cuMemAlloc(CUdeviceptr *address, size_t size) {
  void *block = aligned_alloc(256, (size + 255) / 256 * 256);
  memset(block, 0x5A, size);
  *address = (CUdeviceptr)block;
  return said("cuMemAlloc", "%zu", size);
}
CUresult cuMemFree(CUdeviceptr address) {
  free((void *)address);
  return said("cuMemFree", "");
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr target, const void *source, size_t size, CUstream stream) {
  Work work = {.kind = 'u', .target = (void *)target, .source = source, .size = size};
  CUresult code = said("cuMemcpyHtoDAsync", "%zu", size);
  return code ? code : queue(stream, work);
}
CUresult cuMemcpyDtoHAsync(void *target, CUdeviceptr source, size_t size, CUstream stream) {
  Work work = {.kind = 'd', .target = target, .source = (void *)source, .size = size};
  CUresult code = said("cuMemcpyDtoHAsync", "%zu", size);
  return code ? code : queue(stream, work);
}
CUresult cuMemcpyDtoDAsync(CUdeviceptr target, CUdeviceptr source, size_t size, CUstream stream) {
  Work work = {.kind = 'c', .target = (void *)target, .source = (void *)source, .size = size};
  CUresult code = said("cuMemcpyDtoDAsync", "%zu", size);
  return code ? code : queue(stream, work);
}
CUresult cuMemsetD8Async(CUdeviceptr target, unsigned char byte, size_t size, CUstream stream) {
  Work work = {.kind = 'f', .target = (void *)target, .size = size, .rows = byte};
  CUresult code = said("cuMemsetD8Async", "%u %zu", byte, size);
  return code ? code : queue(stream, work);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
  *module = (CUmodule)0x2000;
  if (memcmp(image, "\177ELF", 4)) return CUDA_ERROR_INVALID_IMAGE;
  return said("cuModuleLoadData", "");
}
CUresult cuModuleUnload(CUmodule module) { return said("cuModuleUnload", "%d", module == (CUmodule)0x2000); }
CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
  *function = (CUfunction)strdup(name);
  return said("cuModuleGetFunction", "%s %d", name, module == (CUmodule)0x2000);
}
CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return said("cuFuncSetAttribute", "%s %d %d", (const char *)function, attribute, value);
}
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters, void **extra) {
  const char *name = (const char *)function;
  int known = !strcmp(name, "add") ? 6 : !strcmp(name, "softmax") ? 4 : 0;
  unsigned x = 1, policy = 0;
  for (unsigned i = 0; i < c->numAttrs; i++) {
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION) x = c->attrs[i].value.clusterDim.x;
    if (c->attrs[i].id == CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE)
      policy = c->attrs[i].value.clusterSchedulingPolicyPreference;
  }
  Work work = {.kind = 'l', .rows = c->gridDimX};
  strncpy(work.name, name, sizeof work.name - 1);
  for (int i = 0; i < known; i++) memcpy(work.values[i], parameters[i], known == 6 && i == 3 ? 4 : 8);
  CUresult code = said("cuLaunchKernelEx", "%s grid %u %u %u block %u %u %u shared %u cluster %u policy %u extra %d",
                       name, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX, c->blockDimY, c->blockDimZ,
                       c->sharedMemBytes, x, policy, extra != NULL);
  return code ? code : queue(c->hStream, work);
}

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
  *stream = (CUstream)calloc(1, sizeof(Stream));
  return said("cuStreamCreate", "%u", flags);
}
CUresult cuStreamDestroy(CUstream stream) {
  free(stream);
  return said("cuStreamDestroy", "");
}
CUresult cuStreamSynchronize(CUstream stream) {
  (void)stream;
  return said("cuStreamSynchronize", "");
}
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  (void)stream;
  return said("cuStreamWaitEvent", "%d %u", event == (CUevent)0x3000, flags);
}
CUresult cuEventCreate(CUevent *event, unsigned flags) {
  *event = (CUevent)0x3000;
  return said("cuEventCreate", "%u", flags);
}
CUresult cuEventRecord(CUevent event, CUstream stream) {
  (void)stream;
  return said("cuEventRecord", "%d", event == (CUevent)0x3000);
}
CUresult cuEventSynchronize(CUevent event) { return said("cuEventSynchronize", "%d", event == (CUevent)0x3000); }
#undef cuEventElapsedTime
CUresult cuEventElapsedTime(float *milliseconds, CUevent first, CUevent last) {
  *milliseconds = 2.5f;
  return said("cuEventElapsedTime", "%d %d", first == (CUevent)0x3000, last == (CUevent)0x3000);
}
CUresult cuEventDestroy(CUevent event) { return said("cuEventDestroy", "%d", event == (CUevent)0x3000); }

CUresult cuStreamBeginCapture(CUstream stream, CUstreamCaptureMode mode) {
  Stream *recording = (Stream *)stream;
  recording->recording = 1, recording->last = &recording->first;
  return said("cuStreamBeginCapture", "%d", mode);
}
CUresult cuStreamEndCapture(CUstream stream, CUgraph *graph) {
  *graph = (CUgraph)((Stream *)stream)->first;
  return said("cuStreamEndCapture", "");
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec *ready, CUgraph graph, unsigned long long flags) {
  *ready = (CUgraphExec)graph;
  return said("cuGraphInstantiateWithFlags", "%llu", flags);
}
CUresult cuGraphDestroy(CUgraph graph) { return said("cuGraphDestroy", "%d", graph != NULL); }
CUresult cuGraphExecDestroy(CUgraphExec graph) { return said("cuGraphExecDestroy", "%d", graph != NULL); }
CUresult cuGraphLaunch(CUgraphExec graph, CUstream stream) {
  (void)stream;
  for (const Work *work = (const Work *)graph; work; work = work->next) act(work);
  return said("cuGraphLaunch", "");
}
