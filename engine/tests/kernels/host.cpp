// The kernels of one source on a processor, as a library with one function. SOURCE names the source.
//   c++ -O1 -std=c++17 -ffp-contract=off -fPIC -shared -DSIMT_HOST -DSOURCE='"attend.cu"' -I FOLDERS host.cpp -o attend.so
#include SOURCE

// Launches a kernel with `size` bytes of arguments; null, or what went wrong. Not for two threads at once.
extern "C" const char* simt_launch(const char* name, const int* grid, int threads, unsigned shared, const void* arguments, size_t size) {
    for (const simt::Kernel& kernel : simt::kernels()) {
        if (strcmp(kernel.name, name)) continue;
        if (kernel.size != size) return "the arguments are not as many bytes as the kernel takes";
        if (kernel.threads != threads) return "the block has not as many threads as the kernel is written for";
        if (shared > simt::SHARED) return "more shared memory than a block can have";
        Dim dim;
        dim.x = grid[0]; dim.y = grid[1]; dim.z = grid[2];
        return simt::launch(dim, threads, shared, [&] { kernel.run(arguments); });
    }
    return "there is no kernel of this name";
}
