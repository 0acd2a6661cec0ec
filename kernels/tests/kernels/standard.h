// What simt.h takes from the standard library: compiled once for all sources, since it is most of what a compiler has to read.
#pragma once
#include <ucontext.h>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <vector>
