"""Compiles CUDA sources for sm_90 with NVRTC, and says what each kernel needs. No card and no driver are needed.

    python3 kernels.py FOLDER_OF_NVRTC FOLDER_OF_SOURCES

The exit code is 3 where NVRTC is not there.

Prints a line a kernel: its source, its name, registers of a thread, bytes of stack, bytes of spilled registers, bytes of shared
memory that the source declares, and how many fused multiply-adds of f64 its machine code has. The last line is about a kernel
that has one, so that a reader who misses them is found out.
"""

import concurrent.futures
import ctypes
import pathlib
import re
import struct
import sys

ARCHITECTURE = b"--gpu-architecture=sm_90"
OPTIONS = [ARCHITECTURE, b"--std=c++17", b"--ptxas-options=-v"]
CONTROL = b'extern "C" __global__ void fused(double* x) { x[0] = fma(x[1], x[2], x[3]); }'
# The low nine bits of an instruction of sm_90, which is 16 bytes, are its operation; the next three where its operands lie.
DFMA = 0x02B


def opened(folder):
    try:
        for name in ["libnvrtc-builtins.so.13.0", "libnvrtc.so.13"]:
            library = ctypes.CDLL(str(folder / name), ctypes.RTLD_GLOBAL)
    except OSError as error:
        print(f"NVRTC could not be opened: {error}")
        sys.exit(3)
    library.nvrtcGetErrorString.restype = ctypes.c_char_p
    return library


class Compiler:
    def __init__(self, nvrtc, files):
        self.nvrtc = nvrtc
        self.texts = (ctypes.c_char_p * len(files))(*[file.read_bytes() for file in files])
        self.names = (ctypes.c_char_p * len(files))(*[file.name.encode() for file in files])

    def check(self, code, log=""):
        if code:
            raise SystemExit(self.nvrtc.nvrtcGetErrorString(code).decode() + "\n" + log)

    def text(self, size, get, program):
        length = ctypes.c_size_t()
        self.check(size(program, ctypes.byref(length)))
        data = ctypes.create_string_buffer(length.value)
        self.check(get(program, data))
        return data.raw

    def compile(self, name, source):
        """The compiler's report and the machine code."""
        nvrtc, program = self.nvrtc, ctypes.c_void_p()
        files = len(self.texts), self.texts, self.names
        self.check(nvrtc.nvrtcCreateProgram(ctypes.byref(program), source, name.encode(), *files))
        code = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), (ctypes.c_char_p * len(OPTIONS))(*OPTIONS))
        log = self.text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(errors="replace")
        self.check(code, f"{name}:\n{log}")
        cubin = self.text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))
        return log, cubin


def sections(elf):
    """The sections of a 64-bit ELF file by name."""
    (at,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, at + number * size) for number in range(count)]
    first = headers[names][4]
    for name, _, _, _, offset, length in headers:
        end = elf.index(b"\0", first + name)
        yield elf[first + name : end].decode(), elf[offset : offset + length]


def fused(cubin, kernel):
    """How many fused multiply-adds of f64 a kernel has."""
    code = dict(sections(cubin))[f".text.{kernel}"]
    words = struct.iter_unpack("<QQ", code)
    return sum(low & 0x1FF == DFMA for low, _ in words)


def number(pattern, text):
    found = re.search(pattern, text)
    return int(found.group(1)) if found else 0


def report(source, log, cubin):
    for kernel, rest in re.findall(r"Compiling entry function '(\w+)'(.*?)(?=Compiling entry|\Z)", log, re.S):
        spilled = number(r"(\d+) bytes spill stores", rest) + number(r"(\d+) bytes spill loads", rest)
        stack, shared = number(r"(\d+) bytes stack frame", rest), number(r"(\d+) bytes smem", rest)
        registers = number(r"Used (\d+) registers", rest)
        print(source, kernel, registers, stack, spilled, shared, fused(cubin, kernel))


def main():
    libraries, folder = map(pathlib.Path, sys.argv[1:])
    sources = sorted(folder.glob("*.cu"))
    # Sources include the header and each other.
    compiler = Compiler(opened(libraries), [folder / "device.h", *sources])
    with concurrent.futures.ThreadPoolExecutor() as threads:
        compiled = threads.map(lambda file: compiler.compile(file.name, file.read_bytes()), sources)
        for file, found in zip(sources, compiled):
            report(file.name, *found)
    report("control", *compiler.compile("control", CONTROL))


if __name__ == "__main__":
    main()
