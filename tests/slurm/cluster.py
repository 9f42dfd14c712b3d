"""A Slurm of one node with two fake GPUs, from the distribution's own packages, for as long as a test needs it."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

CONF = Path("/etc/slurm")
"""Jobs look nowhere else: the executor takes SLURM_CONF away inside them."""
NEEDED = ("slurmctld", "slurmd", "sbatch", "srun", "squeue", "munged")


def why_not() -> str | None:
    """Why it cannot be started here; None when it can."""
    missing = [name for name in NEEDED if shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") is None]
    if missing:
        return f"no Slurm here ({', '.join(missing)}): apt-get install slurmctld slurmd slurm-client munge"
    if os.geteuid() != 0:
        return "a Slurm of one's own needs root"
    if (CONF / "slurm.conf").exists():
        return "this machine has a Slurm of its own"
    return None


@contextmanager
def slurm(folder: Path) -> Iterator[None]:
    """Start munged, slurmctld and slurmd; stop them and take the configuration away at the end."""
    host = socket.gethostname().split(".")[0]
    with ExitStack() as stack:
        _munge(folder, stack)
        CONF.mkdir(exist_ok=True)
        for number in (0, 1):
            device = folder / f"fakegpu{number}"
            subprocess.run(["mknod", str(device), "c", "1", "3"], check=True)
        for name, text in _files(folder, host).items():
            (CONF / name).write_text(text, encoding="utf-8")
            stack.callback((CONF / name).unlink)
        for program in ("slurmctld", "slurmd"):
            _daemon([f"/usr/sbin/{program}", "-D"], folder / f"{program}.out", stack)
        _until("idle", folder)
        yield


def _munge(folder: Path, stack: ExitStack) -> None:
    place = folder / "munge"
    place.mkdir()
    shutil.chown(place, "munge", "munge")
    place.chmod(0o755)
    key = place / "key"
    key.write_bytes(os.urandom(128))
    key.chmod(0o600)
    shutil.chown(key, "munge", "munge")
    options = [f"--socket={place}/socket", f"--key-file={key}", f"--pid-file={place}/pid", f"--log-file={place}/log"]
    options += [f"--seed-file={place}/seed", "--foreground", "--force"]
    _daemon(["runuser", "-u", "munge", "--", "/usr/sbin/munged", *options], folder / "munged.out", stack)
    _wait(lambda: (place / "socket").exists(), folder)


def _daemon(command: list[str], log: Path, stack: ExitStack) -> None:
    with log.open("w") as file:
        process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
    stack.callback(_end, process)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(15)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait(15)


def _files(folder: Path, host: str) -> dict[str, str]:
    controller, node = _free_ports(2)
    return {
        "slurm.conf": f"""ClusterName=lab
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
AuthInfo=socket={folder}/munge/socket
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
GresTypes=gpu
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
MinJobAge=600
ReturnToService=2
SlurmdParameters=config_overrides
NodeName={host} NodeAddr=127.0.0.1 CPUs=8 RealMemory=4000 Gres=gpu:made:2 State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=INFINITE State=UP
""",
        "gres.conf": f"AutoDetect=off\nName=gpu Type=made File={folder}/fakegpu[0-1]\n",
        "cgroup.conf": "CgroupAutomount=no\n",
    }


def _free_ports(count: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(count)]
        for one in sockets:
            one.bind(("127.0.0.1", 0))
        return [one.getsockname()[1] for one in sockets]


def _until(state: str, folder: Path) -> None:
    def there() -> bool:
        done = subprocess.run(["sinfo", "-h", "-o", "%T"], capture_output=True, text=True, check=False, timeout=30)
        return done.stdout.strip() == state

    _wait(there, folder)


def _wait(there, folder: Path) -> None:
    deadline = time.monotonic() + 60
    while not there():
        if time.monotonic() > deadline:
            logs = "\n".join(f"{path.name}: {path.read_text()[-2000:]}" for path in folder.glob("*.out"))
            raise RuntimeError(f"Slurm did not start:\n{logs}")
        time.sleep(0.5)
