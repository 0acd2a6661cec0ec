"""The examples of the README and of the docs run, and the stubs are those of the module."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "bindings" / "python" / "README.md",
    ROOT / "docs" / "src" / "python.md",
    ROOT / "docs" / "src" / "engines.md",
    ROOT / "docs" / "src" / "prompts.md",
    ROOT / "docs" / "src" / "answers.md",
    ROOT / "docs" / "src" / "grammars.md",
]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page, monkeypatch):
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"^```python\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    # Other examples of the README are of clients of the service.
    blocks = blocks if page.parent != ROOT else [block for block in blocks if block.startswith("import lexiform\n")]
    assert blocks
    names = {"__name__": "__main__"}
    left_out = set()
    for block in blocks:
        needed = re.match(r"# needs: (.*)\n", block)
        missing = {name for name in needed[1].split(", ") if importlib.util.find_spec(name) is None} if needed else set()
        left_out |= missing
        if not missing:
            exec(compile(block, str(page), "exec"), names)
    if left_out:
        pytest.skip(f"{', '.join(sorted(left_out))} is not there; the other examples ran")


def test_stubs_are_those_of_the_module():
    pytest.importorskip("mypy")
    done = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "lexiform._lexiform"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_package_is_typed():
    pytest.importorskip("mypy")
    package = ROOT / "bindings" / "python" / "python" / "lexiform"
    config = ROOT / "bindings" / "python" / "pyproject.toml"
    done = subprocess.run(
        [sys.executable, "-m", "mypy", f"--config-file={config}", str(package)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
