"""Copies out of wheels what a C++ program needs: unpack.py WHEELS TREE cpu|cuda|nvrtc.

Python reads zip files without further packages, which neither Rust's standard library nor every shell can do.
WHEELS holds wheels as pip downloads them, and perhaps a folder `installed` as uv unpacks them.
"""

import os
import re
import shutil
import sys
import zipfile

HEADERS = r"torch/include/|torch/version\.py$|torch-[^/]*/.*LICENSE"
KEEP = {
    "cpu": HEADERS
    + r"|torch/lib/lib(c10|torch_cpu|torch)\.so$|torch/lib/libgomp[^/]*$"
    + r"|nvidia/cu13/include/|nvidia/cu13/lib/lib(cudart|cupti)\.so",
    "cuda": HEADERS + r"|torch/lib/(?!libtorch_python|libshm)|nvidia/.*\.(so[.0-9]*|h|hpp|inl)$|nvidia/.*/include/",
    "nvrtc": r"nvidia/cu13/lib/libnvrtc(-builtins)?\.so[.0-9]*$",
}


def main(wheels, tree, kind):
    keep = re.compile(KEEP[kind])
    for name in sorted(os.listdir(wheels)):
        path = os.path.join(wheels, name)
        if name.endswith(".whl"):
            with zipfile.ZipFile(path) as wheel:
                for member in wheel.infolist():
                    if not member.is_dir() and keep.match(member.filename):
                        wheel.extract(member, tree)
            os.unlink(path)  # a wheel is half a gigabyte, and done with
    installed = os.path.join(wheels, "installed")
    for folder, _, files in os.walk(installed):
        for file in files:
            path = os.path.join(folder, file)
            member = os.path.relpath(path, installed)
            if keep.match(member):
                target = os.path.join(tree, member)
                os.makedirs(os.path.dirname(target), exist_ok=True)
                shutil.move(path, target)


main(*sys.argv[1:])
