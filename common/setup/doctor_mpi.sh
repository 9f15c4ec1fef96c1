# shellcheck shell=bash
# Does Open MPI really start ranks here? Part of doctor.sh; uses its row, under, hint and problems.

mpi_fails() {
    row bad "$(say 'MPI, 2 ranks')" "$(say 'fails')" "$1"
    hint "$2"
    problems+=(MPI)
}

# Writes a program that counts the ranks, then does what pipelines do: two ranks send each other
# more than MPI buffers, at the same time.
write_hello() {
    cat >"$1" <<'END'
#include <mpi.h>
#include <stdio.h>
enum { NUMBERS = 1 << 18 };
static int mine[NUMBERS], other[NUMBERS];
int main(int argc, char **argv)
{
    int one = 1, ranks = 0, rank = 0;
    MPI_Request sent;
    MPI_Init(&argc, &argv);
    MPI_Allreduce(&one, &ranks, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0) printf("ranks=%d\n", ranks);
    fflush(stdout);
    if (ranks != 2) return MPI_Finalize();
    mine[NUMBERS - 1] = 1 + rank;
    MPI_Issend(mine, NUMBERS, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, &sent);
    MPI_Recv(other, NUMBERS, MPI_INT, 1 - rank, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Wait(&sent, MPI_STATUS_IGNORE);
    if (rank == 0 && other[NUMBERS - 1] == 2) printf("stages=2\n");
    return MPI_Finalize();
}
END
}

run_hello() {
    (
        open_mpi root here
        timeout -k 5 20 mpirun -n 2 "$1/hello" >"$1/said" 2>&1 </dev/null
    )
}

say_what_mpi_said() {
    grep -v -e '^-*$' "$1" | head -n 4 | while read -r line; do under "$line"; done || true
}

# Compiles a program and runs two ranks that communicate, because a working mpirun alone proves
# little.
check_mpi() {
    local folder=$1 status=0 start seconds
    if ! type -P mpicc >/dev/null || ! type -P mpirun >/dev/null; then
        mpi_fails "$(say 'Open MPI is not installed')" "$(say 'make setup; on a cluster: module load openmpi')"
        return
    fi
    if [[ $(mpirun --version 2>&1) != *'Open MPI'* ]]; then
        mpi_fails "$(say "mpirun is not Open MPI's")" "$(said "%s comes first on PATH; put Open MPI's first" "$(type -P mpirun)")"
        return
    fi
    write_hello "$folder/hello.c"
    if ! mpicc -o "$folder/hello" "$folder/hello.c" >"$folder/said" 2>&1; then
        mpi_fails "$(say 'mpicc cannot compile')" "$(say 'run make setup; the compiler said:')"
        say_what_mpi_said "$folder/said"
        return
    fi
    start=$(date +%s%N)
    run_hello "$folder" || status=$?
    seconds=$(($(date +%s%N) - start))
    printf -v seconds '%d.%02d s' $((seconds / 1000000000)) $((seconds / 10000000 % 100))
    judge_hello "$folder" "$status" "$seconds"
}

# judge_stages FOLDER: without ALL=1, only reports that stages fail.
judge_stages() {
    if grep -qx 'stages=2' "$1/said"; then
        [[ -z $all ]] || row good "$(say 'MPI, 2 stages')" "$(say '1 MiB')" "$(say 'sent both ways at once, unbuffered')"
    else
        row bad "$(say 'MPI, 2 stages')" "$(say '1 MiB')" "$(say 'sent both ways at once does not arrive')"
        hint "$(say 'labs 13 to 15 send both ways at once; check the /dev/shm row')"
        problems+=(MPI)
    fi
}

judge_hello() {
    if grep -qx 'ranks=2' "$1/said" && { ((!$2)) || ! grep -qx 'stages=2' "$1/said"; }; then
        row good "$(say 'MPI, 2 ranks')" "$3" "$(said 'Open MPI %s: ranks communicate' "$(command_version mpirun)")"
        judge_stages "$1"
    elif grep -qx 'ranks=1' "$1/said"; then
        mpi_fails "$(say 'each rank is alone in its world')" \
            "$(say 'mpicc and mpirun come from two installations of MPI; put the folder of one first on PATH')"
    elif (($2 == 124 || $2 == 137)); then
        mpi_fails "$(say 'no answer within 20 s')" "$(say 'is the name of this host in /etc/hosts? Open MPI looks it up')"
    else
        mpi_fails "$(said 'mpirun ended with status %d' "$2")" "$(say 'its first lines are below')"
        say_what_mpi_said "$1/said"
    fi
}
