# Settings of this cluster, for make sbatch, make grade ON=slurm and make doctor. Copy this file to
# site.mk beside the Makefile (git ignores that file) and change it. Settings on the command line
# override it.

# Defaults for jobs.
PARTITION = cpu
ACCOUNT = ada@cpu
TIME = 1:00:00
# QOS = ... , CONSTRAINT = ...
# Cores per rank.
CPUS = 4

# Modules that each script loads first: those with which the kit was built.
MODULES = gcc/12 openmpi openblas

# Additional #SBATCH options, separated by blanks.
SBATCH = --hint=nomultithread --exclusive

# Shell commands for each script.
define SETUP
export OMPI_MCA_btl_tcp_if_include=ib0
endef

# How to start ranks, srun or mpirun, if the default of make sbatch does not work here.
# START = mpirun
