"""A real Slurm with two nodes on this machine, for the tests beside this file: munged, slurmctld
and two slurmd, in their own folder and on their own ports. This file starts them, and ends them by
their process ids. Both nodes are this machine under other host names, because Open MPI names shared
memory after the host."""
import contextlib
import ctypes
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from runs import BUILD, ROOT

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "unshare")
CORES = 4  # cores that each node claims to have
LIMIT = 300  # seconds for one command

CONFIGURATION = """\
ClusterName=balise
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/run/munge.sock,cred_expire=5
CryptoType=crypto/munge
ProctrackType=proctrack/pgid
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=2,bf_interval=2,batch_sched_delay=0
MpiDefault=none
FirstJobId={first}
ReturnToService=2
KillWait=20
EnforcePartLimits=NO
TmpFS={folder}/tmp.%n
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.%n.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.%n.log
SlurmdParameters=config_overrides
NodeName=n1 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[1]} CPUs={cores}
NodeName=n2 NodeHostname={host} NodeAddr=127.0.0.1 Port={ports[2]} CPUs={cores}
PartitionName=p Nodes=n1,n2 Default=YES MaxTime=60
PartitionName=second Nodes=n2 MaxTime=60
"""

# The site's settings: the only network is the loopback, and there are few cores.
SITE = """\
define SETUP
export OMPI_MCA_btl_tcp_if_include=lo
export OMPI_MCA_mpi_yield_when_idle=1 RANKS_SHARE_CORES=1
endef
"""


def missing():
    """The reason why no cluster can run here; an empty text if one can."""
    if os.geteuid() != 0:
        return "only root can start one"
    path = os.environ["PATH"] + ":/usr/sbin:/sbin"
    lacking = [name for name in PROGRAMS if not shutil.which(name, path=path)]
    if lacking:
        return f"{', '.join(lacking)} not installed (common/setup/setup.sh slurm)"
    apart = subprocess.run(["unshare", "--uts", "--mount", "true"], capture_output=True, text=True)
    return f"no host name of its own for a node: {apart.stderr.strip()}" if apart.returncode else ""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def end_with_the_test():
    """Makes a started process end with the test, even if the test is killed."""
    death_signal = 1
    ctypes.CDLL(None).prctl(death_signal, signal.SIGTERM)


class Cluster:
    def __init__(self, folder):
        self.folder = folder
        self.scripts = f"{BUILD}/tests/{os.path.basename(folder)}"  # other tests have their own
        self.daemons = []
        self.environment = {key: value for key, value in os.environ.items()
                            if not key.startswith(("SLURM", "SBATCH", "MAKE", "MFLAGS", "OMPI_", "PRTE_", "PMIX"))}
        self.environment.update(SLURM_CONF=f"{folder}/slurm.conf", PATH=os.environ["PATH"] + ":/usr/sbin:/sbin")

    def start(self, hidden=None):
        """Starts all four daemons; node n2 does not see the folder `hidden`."""
        for name in ("run", "log", "state", "spool.n1", "spool.n2", "tmp.n1", "tmp.n2"):
            os.makedirs(f"{self.folder}/{name}")
        os.chmod(f"{self.folder}/tmp.n1", 0o1777)
        os.chmod(f"{self.folder}/tmp.n2", 0o1777)
        with open(f"{self.folder}/slurm.conf", "w") as file:
            file.write(CONFIGURATION.format(host=socket.gethostname(), folder=self.folder, ports=free_ports(3), cores=CORES,
                                            first=1 + int(time.time()) % 60000000))
        # A container may have no cgroups. Slurm needed none before this setting existed.
        if self.ask("slurmd", "-V").split()[-1:] >= ["23.11"]:
            with open(f"{self.folder}/cgroup.conf", "w") as file:
                file.write("CgroupPlugin=disabled\n")
        with open(f"{self.folder}/munge.key", "wb") as file:
            file.write(os.urandom(1024))
        os.chmod(f"{self.folder}/munge.key", 0o400)
        self.daemon("munged", "--foreground", "--force", "--socket", f"{self.folder}/run/munge.sock", "--key-file",
                    f"{self.folder}/munge.key", "--pid-file", f"{self.folder}/run/munged.pid", "--seed-file",
                    f"{self.folder}/run/munged.seed", "--log-file", f"{self.folder}/log/munged.log")
        self.wait_for(lambda: os.path.exists(f"{self.folder}/run/munge.sock"), "munged listens")
        self.daemon("slurmctld", "-D")
        for node in ("n1", "n2"):
            shared = "mount -t tmpfs none /dev/shm && "  # each node has its own
            hide = f"mount -t tmpfs none {hidden} && cd / && " if hidden and node == "n2" else ""
            self.daemon("unshare", "--uts", "--mount", "--propagation", "private", "sh", "-c",
                        f"hostname {node} && {shared}{hide}exec slurmd -D -N {node}")
        self.wait_for(lambda: self.ask("sinfo", "-h", "-o", "%t", "-p", "p") == "idle", "both nodes are idle")

        with open(f"{self.folder}/site.mk", "w") as file:
            file.write(SITE)

    def daemon(self, *command):
        with open(f"{self.folder}/log/started", "a") as log:
            self.daemons.append(subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                 cwd=self.folder, start_new_session=True, preexec_fn=end_with_the_test))

    def ask(self, *command):
        return subprocess.run(command, env=self.environment, capture_output=True, text=True).stdout.strip()

    def wait_for(self, condition, what, seconds=300):
        end = time.time() + seconds
        while not condition():
            if time.time() > end:
                raise SystemExit(f"not ok - {what} within {seconds} s\n    " + self.logs().replace("\n", "\n    "))
            time.sleep(0.1)

    def make(self, *words, **environment):
        """Starts make with the cluster's site file, in its own process group, with its output as
        text."""
        return subprocess.Popen(["make", f"SITE={self.folder}/site.mk", f"BUILD={BUILD}", f"SLURM_FOLDER={self.scripts}", *map(str, words)], cwd=ROOT,
                                env={**self.environment, **environment}, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, start_new_session=True, preexec_fn=end_with_the_test)

    def made(self, *words, **environment):
        """Runs make; returns the exit status and all output. Ends it, with its job, if it takes too
        long."""
        job = self.make(*words, **environment)
        try:
            text, _ = job.communicate(timeout=LIMIT)
        except subprocess.TimeoutExpired:
            os.killpg(job.pid, signal.SIGKILL)
            text = job.communicate()[0] + f"not ended within {LIMIT} s\n"
            self.ask("scancel", "--user", "root")
            self.wait_for(lambda: self.queue() == "", "the queue is empty")
        return job.returncode, text

    def logs(self):
        text = ""
        for name in sorted(os.listdir(f"{self.folder}/log")):
            with open(f"{self.folder}/log/{name}", errors="replace") as file:
                text += f"{name}:\n" + "".join(file.readlines()[-15:])
        return text

    def queue(self):
        """A line for each unfinished job: its number, name and state."""
        return self.ask("squeue", "-h", "-o", "%i %j %T")

    def stop(self):
        self.ask("scancel", "--user", "root")
        with contextlib.suppress(SystemExit):
            self.wait_for(lambda: self.queue() == "", "the queue is empty")
        for daemon in reversed(self.daemons):
            daemon.send_signal(signal.SIGTERM)
        for daemon in self.daemons:
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()


@contextlib.contextmanager
def cluster(hidden=None):
    # A short path, because a socket's path has at most 107 characters; not /tmp, which a sandbox
    # hides.
    with tempfile.TemporaryDirectory(prefix="balise-slurm.", dir="/var/tmp", ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        signal.signal(signal.SIGTERM, lambda *_: sys.exit("the test was ended"))
        one = Cluster(folder)
        try:
            one.start(hidden)
            yield one
        finally:
            one.stop()
            shutil.rmtree(one.scripts, ignore_errors=True)
