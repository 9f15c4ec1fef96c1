# What this cluster needs, for make sbatch, make grade ON=slurm and make doctor. Copy it to site.mk beside the
# Makefile (git leaves that file alone) and change it; the command line goes before it.

# Where jobs go when nothing else is said.
PARTITION = cpu
ACCOUNT = ada@cpu
TIME = 1:00:00
# QOS = ... , CONSTRAINT = ...
# Cores of a rank.
CPUS = 4

# Loaded at the head of each script: those that the kit was built with.
MODULES = gcc/12 openmpi/4.1 openblas

# Additional #SBATCH options, separated by blanks.
SBATCH = --hint=nomultithread --exclusive

# Shell commands for each script.
define SETUP
export OMPI_MCA_btl_tcp_if_include=ib0
endef

# How to start ranks, if the default of make sbatch does not work here: srun or mpirun.
# START = mpirun
