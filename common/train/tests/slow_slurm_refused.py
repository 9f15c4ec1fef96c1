#!/usr/bin/python3
"""A job that cannot run on a cluster is rejected with one error, a HINT and exit status 2, and no
job stays in the queue."""
import os
import re
import tempfile

from runs import ROOT, check
from slurm_cluster import cluster, missing

TINY = ["sbatch", "LAYERS=1", "HIDDEN_DIM=8", "HEADS=2", "BATCH_SIZE=4", "SEQ=8", "STEPS=1"]


def refused(one, sentence, expected, *words, after_submission=False, **environment):
    status, text = one.made(*words, **environment)
    good = (status == 2 and len(re.findall(r"^error:", text, re.MULTILINE)) == 1 and text.count("HINT:") == 1 and all(word in text for word in expected) and
            "Traceback" not in text and one.queue() == "" and bool(re.search(r"^job \d+", text, re.MULTILINE)) == after_submission)
    check(good, sentence, f"status {status}, queue {one.queue()!r}\n{text}")


def path_without_slurm(folder):
    """Makes a PATH with every command of this machine except Slurm's."""
    os.makedirs(f"{folder}/bin")
    for place in os.environ["PATH"].split(":"):
        for name in os.listdir(place) if os.path.isdir(place) else []:
            if name not in ("sbatch", "srun", "salloc", "squeue", "sinfo", "scontrol", "scancel") and not os.path.lexists(f"{folder}/bin/{name}"):
                os.symlink(f"{place}/{name}", f"{folder}/bin/{name}")
    return f"{folder}/bin"


def before_the_queue(one):
    refused(one, "an unknown partition is refused, with the names of the existing ones", ["'night'", "p second"], *TINY, "PARTITION=night")
    refused(one, "more ranks than the partition has cores are refused", ["room for 8 ranks", "NTASKS=9"], *TINY, "NTASKS=9", "BATCH_SIZE=9")
    refused(one, "more cores per rank than a node has are refused", ["room for 0 ranks with CPUS=5"], *TINY, "CPUS=5")
    refused(one, "more nodes than the partition has are refused", ["too few nodes (1)", "NODES=2"], *TINY, "NTASKS=2", "NODES=2", "PARTITION=second")
    refused(one, "ranks that the nodes cannot share evenly are refused", ["NTASKS=3", "NODES=2"], *TINY, "NTASKS=3", "NODES=2", "BATCH_SIZE=6")
    for time in ("soon", "1:2:3:4", "-5", "0", "1-", "10m"):
        refused(one, f"TIME={time} is refused", ["TIME", f"'{time}'"], *TINY, f"TIME={time}")
    for time in ("5", "5:00", "0:05:00", "0-1", "0-0:05"):
        status, text = one.made(*TINY, f"TIME={time}", "NAME=time")
        check(status == 0, f"TIME={time} is taken", text)
    refused(one, "a NAME that is no file name is refused", ["NAME", "'a b/c'"], *TINY, "NAME=a b/c")
    refused(one, "GPUS that is not a number is refused", ["GPUS", "'all'"], *TINY, "GPUS=all")
    refused(one, "more ranks on a node than its GPUS are refused", ["2 ranks per node", "GPUS=1"], *TINY, "NTASKS=4", "NODES=2", "GPUS=1")
    refused(one, "an unknown START is refused", ["START", "'mpiexec'"], *TINY, "START=mpiexec")
    refused(one, "NTASKS that is not a number is refused", ["NTASKS", "'few'"], *TINY, "NTASKS=few")
    refused(one, "a stage that cannot split the model is refused", ["STACK=serial"], *TINY, "NTASKS=2", "TP=2", "STACK=serial")
    refused(one, "options that do not fit each other are refused before a job is submitted", ["8 heads", "3 ranks"], *TINY, "NTASKS=3", "TP=3",
            "HIDDEN_DIM=24", "HEADS=8", "BATCH_SIZE=6")
    refused(one, "missing data are refused before a job is submitted", ["nowhere.csv"], *TINY, "DATA=nowhere.csv")
    refused(one, "waiting for an unknown job is refused", ["not know job 424242"], "sbatch", "JOB=424242")
    refused(one, "a JOB that is not a number is refused", ["JOB", "'mine'"], "sbatch", "JOB=mine")
    refused(one, "grading an unknown lab on a node is refused", ["no lab '99'"], "grade", "LAB=99", "ON=slurm")


def by_slurm(one):
    refused(one, "GPUs that no node has are rejected with Slurm's message", ["Slurm rejects", "GPU"], *TINY, "GPUS=1")
    refused(one, "a constraint that no node meets is rejected", ["Slurm rejects"], *TINY, "CONSTRAINT=v100")
    refused(one, "a job longer than the partition allows is removed from the queue", ["PartitionTimeLimit", "removed from the queue"], *TINY, "TIME=2:00:00",
            after_submission=True)


def by_the_nodes(one):
    refused(one, "a folder that the second node does not see is one error with the node's name", ["node n2", "share"], *TINY, "NTASKS=2", "NODES=2",
            "NAME=blind-second", after_submission=True)
    refused(one, "a folder that the first node does not see is one error", ["n2", "share"], *TINY, "PARTITION=second", "NAME=blind-first",
            after_submission=True)
    refused(one, "an error that only the training detects is the job's one error", ["do not fit"], *TINY, "MEM=1K", "NAME=memory",
            after_submission=True)


def main():
    why = missing()
    if why:
        print(f"skip - what cannot run on a cluster: {why}")
        return
    with cluster(hidden=ROOT) as one, tempfile.TemporaryDirectory() as folder:
        before_the_queue(one)
        by_slurm(one)
        by_the_nodes(one)
        refused(one, "a missing Slurm is one error", ["no Slurm here"], *TINY, PATH=path_without_slurm(folder))
        configuration = one.environment["SLURM_CONF"]
        with open(configuration) as file, open(f"{folder}/slurm.conf", "w") as other:
            other.write(file.read().replace("SlurmctldPort=", "SlurmctldPort=1 #"))
        refused(one, "a controller that does not answer is one error", ["does not answer"], *TINY, SLURM_CONF=f"{folder}/slurm.conf")


main()
