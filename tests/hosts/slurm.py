"""A Slurm of one node on this machine, for tests:

    with Slurm(folder) as slurm:
        subprocess.run(["srun", "--mpi=pmix", "-n", "2", ...], env=slurm.environment())

Its daemons, key, ports and files are its own. Needs root and Debian's slurmctld, slurmd, slurm-client and munge.
"""

import os
import shutil
import socket
import subprocess
import time


def obstacle():
    """Why there can be no Slurm here; '' when there can."""
    missing = [p for p in ("slurmctld", "slurmd", "srun", "salloc", "munged") if shutil.which(p) is None]
    if missing:
        return f"{', '.join(missing)} not installed (Debian: slurmctld slurmd slurm-client munge)"
    return "" if os.geteuid() == 0 else "it needs root"


def free_ports(n):
    sockets = [socket.socket() for _ in range(n)]
    for s in sockets:
        s.bind(("", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


class Slurm:
    def __init__(self, folder, cpus=4):
        self.folder, self.daemons = folder, []
        folder.mkdir(mode=0o755)
        host, (control, node) = socket.gethostname().split(".")[0], free_ports(2)
        key = folder / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for name in ("state", "spool"):
            (folder / name).mkdir()
        (folder / "slurm.conf").write_text(f"""
ClusterName=one
SlurmctldHost={host}(127.0.0.1)
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/control.pid
SlurmdPidFile={folder}/node.pid
SlurmctldLogFile={folder}/control.log
SlurmdLogFile={folder}/node.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
ReturnToService=2
SlurmctldPort={control}
SlurmdPort={node}
SlurmdParameters=config_overrides
MpiDefault=none
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} Boards=1 SocketsPerBoard=1 CoresPerSocket={cpus} ThreadsPerCore=1
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP OverSubscribe=YES
""")

    def environment(self):
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("SLURM", "PMI"))}
        return dict(kept, SLURM_CONF=str(self.folder / "slurm.conf"), OMPI_MCA_btl_vader_single_copy_mechanism="none")

    def _start(self, *words):
        log = open(self.folder / f"{words[0]}.out", "wb")
        self.daemons.append(subprocess.Popen(words, env=self.environment(), stdout=log, stderr=log,
                                             stdin=subprocess.DEVNULL))

    def __enter__(self):
        self._start("munged", "--foreground", "--force", f"--key-file={self.folder}/key",
                    f"--socket={self.folder}/munge", f"--pid-file={self.folder}/munge.pid",
                    f"--seed-file={self.folder}/munge.seed", f"--log-file={self.folder}/munge.log")
        self._start("slurmctld", "-D")
        self._start("slurmd", "-D")
        for _ in range(600):
            idle = subprocess.run(["sinfo", "-h", "-o", "%T"], env=self.environment(), capture_output=True, text=True)
            if idle.stdout.strip() == "idle":
                return self
            time.sleep(0.2)
        self.__exit__()
        raise RuntimeError(f"Slurm does not come up: {idle.stdout} {idle.stderr}")

    def __exit__(self, *_):
        for daemon in reversed(self.daemons):
            daemon.terminate()
        for daemon in self.daemons:
            try:
                daemon.wait(timeout=30)
            except subprocess.TimeoutExpired:
                daemon.kill()
