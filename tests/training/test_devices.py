import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import unweave as uw
from unweave.errors import ArgumentError
from unweave.training.devices import create_fabric, is_plain

PROGRAM = f"""
import sys
sys.path.insert(0, {str(Path(__file__).parent)!r})
import torch
torch.set_num_threads(1)
from conftest import small_images
import unweave as uw

data = small_images()
method = uw.methods.create("factor_vae", data, latent_size=2)
run = uw.train(method, data, 3, 8, device="cpu", devices=2, out=sys.argv[1], log_every=1, pictures=False)
total = sum(value.double().sum().item() for value in run.method.state_dict().values())
open(f"{{sys.argv[1]}}-weights", "a").write(f"{{total!r}}\\n")
"""


def test_several_processes_share_each_batch_and_agree(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)  # Fabric starts the other processes by running the same file
    done = subprocess.run(
        [sys.executable, program, tmp_path / "run"], capture_output=True, text=True, timeout=200, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    run = uw.load(tmp_path / "run")
    assert run.finished
    assert [record["step"] for record in run.records] == [1, 2, 3]  # one process writes
    totals = (tmp_path / "run-weights").read_text().split()
    assert len(totals) == 2
    assert totals[0] == totals[1]  # the weights are the same in both


def test_devices_that_are_not_there_are_refused():
    missing = "cuda" if not torch.cuda.is_available() else "mps"
    with pytest.raises(ArgumentError, match=f"device = '{missing}'.*of this machine"):
        create_fabric(missing, 1, "32-true", "auto")


def test_what_needs_no_wrappers_is_one_process_with_32_bits_on_the_cpu(monkeypatch):
    assert is_plain(create_fabric("cpu", 1, "32-true", "auto"))
    assert not is_plain(create_fabric("cpu", 1, "64-true", "auto"))
    assert not is_plain(create_fabric("cpu", 1, "bf16-mixed", "auto"))
    monkeypatch.setenv("LT_PRECISION", "bf16-mixed")  # Fabric's variables are stronger than its arguments
    assert not is_plain(create_fabric("cpu", 1, "32-true", "auto"))


def test_a_method_that_is_elsewhere_is_moved_to_the_device_that_was_asked_for(monkeypatch):
    data = uw.data.from_arrays(np.zeros((4, 8, 8, 1), np.uint8))
    method = uw.methods.create("vae", data, latent_size=2, architecture="mlp")
    moved = []
    plain = torch.nn.Module.to

    def to(self, *arguments, **options):
        if self is method:
            moved.extend(arguments)
        return plain(self, *arguments, **options)

    monkeypatch.setattr(torch.nn.Module, "to", to)
    uw.train(method, data, 1, 4, device="cpu")
    assert torch.device("cpu") in moved
