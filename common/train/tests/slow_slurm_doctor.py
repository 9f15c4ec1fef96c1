#!/usr/bin/python3
"""make doctor reports whether Slurm is available, and whether srun and MPI work together."""
import os
import re
import tempfile

from runs import ROOT, check
from slurm_cluster import cluster, missing


def says(one, sentence, pattern, **environment):
    status, text = one.made("doctor", **environment)
    check(status == 0 and re.search(pattern, text, re.MULTILINE) and one.queue() == "" and
          all(len(line) <= 80 for line in text.splitlines()), sentence, text)


def with_srun(one, folder, script):
    """A PATH with another srun first."""
    with open(f"{folder}/srun", "w") as file:
        file.write(f"#!/bin/sh\n{script}\n")
    os.chmod(f"{folder}/srun", 0o755)
    return f"{folder}:{one.environment['PATH']}"


def main():
    why = missing()
    if why:
        print(f"skip - the doctor on a cluster: {why}")
        return
    with cluster() as one, tempfile.TemporaryDirectory() as folder:
        says(one, "a working Slurm is listed with its partitions", r"^  ✓ Slurm +[0-9.]+ +p second$")
        says(one, "the doctor reports that ranks started by srun communicate", r"^  ✓ srun --mpi=pmix .*communicate")
        none = with_srun(one, folder, "echo none pmi2")
        says(one, "without PMIx, the doctor says that mpirun starts ranks", r"^  ! srun --mpi=pmix +none .*mpirun", PATH=none)
        alone = with_srun(one, folder, "echo pmix; echo ranks=1; echo ranks=1")
        says(one, "ranks that do not see each other are reported, with a HINT", r"(?s)each rank is alone.*HINT: .*START = mpirun", PATH=alone)
        with open(f"{folder}/site.mk", "w") as site:
            site.write(open(f"{ROOT}/common/slurm/site-example.mk").read())
        status, text = one.made("doctor", f"SITE={folder}/site.mk")
        check(status == 0 and "there is no partition 'cpu'" in text and "HINT: PARTITION in site.mk" in text,
              "an unedited site.mk is reported, with what to edit", text)
        one.ask("scontrol", "update", "NodeName=n1,n2", "State=DRAIN", "Reason=test")
        says(one, "the doctor says if no node is free", r"^    srun --mpi=pmix +not tried")


main()
