// The kernels of one source on a processor, as a library with one function. SOURCE names the source.
//   c++ -O1 -march=native -std=c++17 -ffp-contract=off -fPIC -shared -DSIMT_HOST -DSOURCE='"attend.cu"' -I FOLDERS host.cpp -o attend.so
#include "standard.h"
#include SOURCE

// Memory that the kernel ahead is still writing.
struct Ahead { void* at; size_t bytes; };

// Launches a kernel with `size` bytes of arguments, perhaps while the kernel ahead is still running; null, or what went wrong.
// Not for two threads at once.
extern "C" const char* simt_launch(const char* name, const int* grid, int threads, unsigned shared, const void* arguments, size_t size, const Ahead* ahead, size_t count) {
    for (const simt::Kernel& kernel : simt::kernels()) {
        if (strcmp(kernel.name, name)) continue;
        if (kernel.size != size) return "the arguments are not as many bytes as the kernel takes";
        if (kernel.threads != threads) return "the block has not as many threads as the kernel is written for";
        if (shared > simt::SHARED) return "more shared memory than a block can have";
        Dim dim;
        dim.x = grid[0]; dim.y = grid[1]; dim.z = grid[2];
        std::vector<simt::Written> written;
        for (size_t i = 0; i < count; i++) written.push_back({ahead[i].at, ahead[i].bytes, {}});
        return simt::launch(dim, threads, shared, written, [&] { kernel.run(arguments); });
    }
    return "there is no kernel of this name";
}
