#!/usr/bin/python3
"""The batch scripts of make sbatch. The test uses a fake Slurm made of scripts, which accepts any
job, has two nodes of eight cores, and reports the job as done. slow_slurm_*.py use a real one."""
import os
import re
import subprocess
import tempfile

from runs import BUILD, ROOT, check

NODES = r"""case "$*" in
*version*) echo slurm 22.05 ;;
*%R*) printf 'cpu\ngpu\n' ;;
*%P*) echo 'cpu*' ;;
*) printf 'n1 8\nn2 8\n' ;;
esac"""
DONE = 'case "$1 $2" in "show job") echo "JobId=7 JobState=COMPLETED NodeList=n1 StdOut=$FAKE/out ExitCode=0:0" ;; "show config") echo "TaskPlugin = $TASKS" ;; esac'
COMMANDS = {"sbatch": 'env > "$FAKE/env"; cp "$2" "$FAKE/submitted"; echo 7 > "$FAKE/out"; echo 7', "sinfo": NODES, "scontrol": DONE,
            "squeue": "true", "srun": 'echo "none $MPI"', "scancel": "true"}
TINY = ["LAYERS=1", "HIDDEN_DIM=16", "HEADS=4", "BATCH_SIZE=8", "SEQ=8", "STEPS=1"]


class Slurm:
    def __init__(self, folder):
        self.folder = folder
        os.mkdir(f"{folder}/bin")
        for name, text in COMMANDS.items():
            with open(f"{folder}/bin/{name}", "w") as file:
                file.write(f"#!/bin/bash\n{text}\n")
            os.chmod(f"{folder}/bin/{name}", 0o755)

    def submitted(self, *words, site="", **environment):
        """The script that sbatch received, or else the output."""
        with open(f"{self.folder}/site.mk", "w") as file:
            file.write(site)
        clean = {key: value for key, value in os.environ.items() if not key.startswith(("SLURM", "SBATCH", "MAKE", "MFLAGS"))}
        with tempfile.TemporaryDirectory() as scripts:
            done = subprocess.run(["make", f"BUILD={BUILD}", f"SITE={self.folder}/site.mk", f"SLURM_FOLDER={scripts}", *words], cwd=ROOT,
                                  capture_output=True, text=True,
                                  env={**clean, "PATH": f"{self.folder}/bin:{clean['PATH']}", "FAKE": self.folder, "MPI": "pmix",
                                       "TASKS": "task/affinity", **environment})
        if done.returncode:
            return done.stdout + done.stderr
        with open(f"{self.folder}/submitted") as file:
            return file.read()


def has(sentence, text, *lines, without=()):
    check(all(f"\n{line}" in text for line in lines) and not any(word in text for word in without), sentence, text)


def exported(script, name, **environment):
    """The value that the script's line `name=...` gives the variable in this environment."""
    lines = re.findall(f"^(?:export )?{name}=.*$", script, re.M)
    return subprocess.run(["bash", "-c", "\n".join([*lines, f'echo "${name}"'])], capture_output=True, text=True, check=True,
                          env={"PATH": os.environ["PATH"], **environment}).stdout.strip()


def of_the_layout(slurm):
    has("the script requests tasks, cores, nodes and a signal before the end", slurm.submitted("sbatch", "NTASKS=8", "TP=4", "NODES=2", "CPUS=2", *TINY),
        "#SBATCH --ntasks=8\n", "#SBATCH --cpus-per-task=2\n", "#SBATCH --nodes=2\n", "#SBATCH --ntasks-per-node=4\n",
        "#SBATCH --signal=B:USR1@60\n", "srun --quiet --mpi=pmix --ntasks=8 --cpus-per-task=2 --kill-on-bad-exit=1 --cpu-bind=cores ")
    has("without LAYERS and BATCH_SIZE, stages and micro-batches get theirs", slurm.submitted("sbatch", "NTASKS=6", "PP=3", "MICRO=3"),
        "#SBATCH --ntasks=6\n")
    has("GPUS of a node are its ranks, one each", slurm.submitted("sbatch", "NTASKS=8", "GPUS=4", *TINY), "#SBATCH --nodes=2\n",
        "#SBATCH --ntasks-per-node=4\n", "#SBATCH --gres=gpu:4\n")
    has("if Slurm cannot bind ranks, the script does not request it", slurm.submitted("sbatch", *TINY, TASKS="task/none"), "srun ", without=["cpu-bind"])
    has("if Slurm has no PMIx, mpirun starts the ranks", slurm.submitted("sbatch", "NTASKS=2", *TINY, MPI="pmi2"), "mpirun -n 2 ",
        without=["srun --quiet --mpi=pmix"])
    again = slurm.submitted("sbatch", "SAVE=a b", "RESUME=a b", *TINY)
    has("a job with the same SAVE and RESUME can go back into the queue", again, "#SBATCH --requeue\n", "#SBATCH --open-mode=append\n",
        "    scontrol requeue ")
    has("other jobs cannot", slurm.submitted("sbatch", "SAVE=a", *TINY), "#SBATCH --no-requeue\n", without=["scontrol requeue"])
    check("--save 'a b'" in again and "--resume 'a b'" in again, "values keep their blanks", again)
    has("a job that starts again shares memory in another folder", again, *(f'export OMPI_MCA_{of}_backing_directory="$shared"\n' for of in ("btl_vader", "btl_sm", "osc_sm")),
        'blind=$(on_each_node sh -c \'mkdir -p "$1"; ', 'on_each_node rm -rf "$shared"\n')
    folders = [exported(again, "shared", SLURM_JOB_ID="7", **count)
               for count in ({}, {"SLURM_RESTART_COUNT": "1"}, {"SLURM_RESTART_COUNT": "2"})]
    check(len(set(folders)) == 3 and all(folders), "each start of a job has its own folder", str(folders))
    fences = [exported(again, "SLURM_PMIX_FENCE", **given) for given in ({}, {"SLURM_PMIX_FENCE": "tree"})]
    check(fences == ["ring", "tree"], "ranks start by Slurm's ring, unless the user has set SLURM_PMIX_FENCE", str(fences))


def of_the_site(slurm):
    site = ("PARTITION = gpu\nACCOUNT = ada\nTIME = 10\nMODULES = gcc/12 openmpi\nSBATCH = --hint=nomultithread --exclusive\n"
            "define SETUP\nexport A=$HOME\nulimit -c 0\nendef\n")
    text = slurm.submitted("sbatch", "TIME=5", *TINY, site=site)
    has("site.mk says where jobs go and what they load", text, "#SBATCH --partition=gpu\n", "#SBATCH --account=ada\n",
        "#SBATCH --hint=nomultithread\n", "#SBATCH --exclusive\n", "module load gcc/12 openmpi\n", "export A=$HOME\nulimit -c 0\n")
    has("the command line overrides it", text, "#SBATCH --time=5\n", without=["--time=10"])
    text = slurm.submitted("sbatch", "QOS=dev", "CONSTRAINT=a100&nvlink", *TINY, NAME="Ada Lovelace", TIME="soon", SBATCH_QOS="other", SBATCH_EXPORT="ALL")
    has("NAME and TIME in the environment are ignored", text, "#SBATCH --job-name=train\n", "#SBATCH --qos=dev\n",
        "#SBATCH --constraint='a100&nvlink'\n", without=["--time"])
    with open(f"{slurm.folder}/env") as file:
        sees = file.read()
    check("SBATCH_EXPORT" in sees and "SBATCH_QOS" not in sees, "variables that sbatch reads do not override settings of the job", sees)
    has("a grade is one process, which starts its ranks itself", slurm.submitted("grade", "SOLUTION=1", "LAB=1", "ON=slurm", site=site),
        "#SBATCH --ntasks=1\n", "#SBATCH --cpus-per-task=4\n", "#SBATCH --partition=gpu\n", "module load gcc/12", "exec " + BUILD.removeprefix(f"{ROOT}/") + "/grade ")
    example = slurm.submitted("sbatch", "PARTITION=cpu", *TINY, f"SITE={ROOT}/common/slurm/site-example.mk")
    has("site-example.mk is a valid site file", example, "#SBATCH --account=ada@cpu\n", "module load gcc/12 openmpi openblas\n",
        "export OMPI_MCA_btl_tcp_if_include=ib0\n")


def refusals(slurm):
    for sentence, expected, words in [
            ("grading on something else is refused", "make grade cannot run on 'pbs'", ["grade", "ON=pbs"]),
            ("training ON=slurm is told of make sbatch", "make sbatch", ["train", "ON=slurm"]),
            ("a job whose labs cannot split the model like this is refused", "before lab 12", ["sbatch", "PP=2", "UPTO=11"]),
            ("a site's file that is not there is refused", "nowhere.mk", ["sbatch", "SITE=nowhere.mk"])]:
        text = slurm.submitted(*words)
        check(expected in text and text.count("HINT") == 1, sentence, text)


with tempfile.TemporaryDirectory() as place:
    fake = Slurm(place)
    of_the_layout(fake)
    of_the_site(fake)
    refusals(fake)
