"""Runs the source of a CUDA kernel on the CPU: blocks one after the other, threads side by side."""

import ctypes
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy
from torch import Tensor

BEFORE = r"""
#include <barrier>
#include <cmath>
#include <memory>
#include <thread>
#include <vector>
#define __global__
#define __shared__
struct Place { unsigned x; };
thread_local Place threadIdx, blockIdx;
Place blockDim;
double shared[1 << 20];
std::unique_ptr<std::barrier<>> meeting;
void __syncthreads() { meeting->arrive_and_wait(); }
using std::exp; using std::fmax; using std::log;
"""
LAUNCH = r"""
extern "C" void launch_{name}(unsigned blocks, unsigned threads, {declared}) {{
    blockDim.x = threads;
    for (unsigned b = 0; b < blocks; ++b) {{
        meeting = std::make_unique<std::barrier<>>(threads);
        std::vector<std::thread> running;
        for (unsigned i = 0; i < threads; ++i)
            running.emplace_back([=] {{
                threadIdx.x = i;
                blockIdx.x = b;
                {name}({names});
                meeting->arrive_and_drop();
            }});
        for (auto& thread : running) thread.join();
    }}
}}
"""


def compiler() -> str | None:
    """A C++ compiler with std::barrier, g++ 11 or later; None if there is none."""
    found = shutil.which("g++")
    if found is None:
        return None
    command = [found, "-std=c++20", "-x", "c++", "-fsyntax-only", "-"]
    tried = subprocess.run(command, input=b"#include <barrier>", capture_output=True, check=False)
    return None if tried.returncode else found


def build(compiler: str, source: str, real: str, folder: Path) -> ctypes.CDLL:
    """Compile the kernels of a source for `REAL`, with a function `launch_NAME` for each."""
    parts = [BEFORE, source]
    for kernel in source.split("__global__ void ")[1:]:
        name, _, rest = kernel.partition("(")
        declared = rest[: rest.index(")")]
        names = ", ".join(one.split()[-1].lstrip("*") for one in declared.split(","))
        parts.append(LAUNCH.format(name=name, declared=declared, names=names))
    file, library = folder / f"{real}.cpp", folder / f"{real}.so"
    file.write_text("".join(parts), encoding="utf8")
    command = [compiler, "-std=c++20", "-O1", "-shared", "-fPIC", "-pthread"]
    subprocess.run([*command, f"-DREAL={real}", str(file), "-o", str(library)], check=True)
    return ctypes.CDLL(str(library))


def launch(library: ctypes.CDLL, name: str, blocks: int, threads: int, arguments: Any) -> None:
    """Run a kernel on tensors of the CPU, numbers, and None for the null pointer."""
    passed = [ctypes.c_uint(blocks), ctypes.c_uint(threads)]
    for argument in arguments:
        if isinstance(argument, Tensor):
            passed.append(ctypes.c_void_p(argument.data_ptr()))
        elif argument is None:
            passed.append(ctypes.c_void_p(None))
        elif isinstance(argument, numpy.int32):
            passed.append(ctypes.c_int(int(argument)))
        else:
            passed.append(ctypes.c_longlong(int(argument)))
    getattr(library, f"launch_{name}")(*passed)
