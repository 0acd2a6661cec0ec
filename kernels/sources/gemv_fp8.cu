// gemv.cu for weights that are floating-point numbers of eight bits (e4m3), with a scale for each row.
#include "device.h"
#define WEIGHTS E4m3
#define NAMED(kernel) kernel##_fp8
#include "gemv.cu"
