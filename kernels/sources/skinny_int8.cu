// skinny.cu for weights that are whole numbers of eight bits, with a scale for each row.
#include "device.h"
#define WEIGHTS Int8
#define NAMED(kernel) kernel##_int8
#include "skinny.cu"
