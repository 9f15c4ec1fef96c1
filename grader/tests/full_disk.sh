#!/usr/bin/env bash
# A disk that fills up during the build: make prints one error, blames no lab, and leaves nothing
# half-written for the next make.
# shellcheck disable=SC2317,SC2329 # functions are called by check
# shellcheck source=grader/tests/tree.sh
. "$(dirname "$0")/tree.sh"
# Runs again in namespaces in which this user may mount.
if [ -z "${MOUNTS:-}" ]; then
    if ! unshare -rm true 2> /dev/null; then
        echo "skip - a full disk during the build is one error: this user may mount nothing (unshare -rm)"
        exit
    fi
    MOUNTS=yes exec unshare -rm bash "$0"
fi
make_tree full-disk
copy_solution 2
make --silent build/grade LAB=2 runners > out 2>&1 || cat out
mkdir small
mount -t tmpfs -o size=120m none small && cp -rp build/. small && mount --move small build || exit 2
# Fills the disk up to $LEFT kilobytes before a compiler or linker with the argument $BEFORE runs.
# For a lab, a fake timeout does this, because the enclosed compiler cannot write the filler.
mkdir bin
cat > bin/timeout << 'END'
#!/usr/bin/env bash
case " $* " in
*" ${BEFORE:-none} "*) [ -e build/filler ] || head -c "$(($(df -k --output=avail build | tail -1) - LEFT))K" /dev/zero > build/filler ;;
esac
case $0 in
*/timeout) PATH=${PATH#*:} exec timeout "$@" ;;
*) exec gcc "$@" ;;
esac
END
chmod +x bin/timeout
cp bin/timeout cc
PATH=$PWD/bin:$PATH
tells() { # once
    [ "$status" != 0 ] && [ "$(grep -c '^error: the disk of the folder build is full' out)" = 1 ] && [ "$(grep -c 'HINT: free some space' out)" = 1 ] && ! grep -q '^Lab' out
}

for before in -S -Wl,-u,protocol_stamp,-u,scenario_02; do
    for left in 0 8 40; do
        rm -rf build/{labs/student,runners}/*2*
        BEFORE=$before LEFT=$left grade CC="$PWD/cc" LAB=2
        check "a disk that fills up before $before, with $left KB left, is not blamed on the lab" tells
        rm build/filler
        grade LAB=2
        check "once there is space, the lab has full marks" scores 9/9
    done
done
export OPTIMISE=-O0 # which takes a third of the time
for left in 0 8 60; do
    rm build/float/common/backend/cpu/*.{o,d}
    BEFORE=-MMD LEFT=$left make CC="$PWD/cc" build/libbalise.a > out 2>&1
    status=$?
    check "a disk that fills up while the kit is built, with $left KB left, is one error" tells
    check "no half-written file is left" [ -z "$(find build/float/common/backend/cpu -newer cc -name '*.[od]')" ]
    rm build/filler
    check "once there is space, the kit is built" make --silent build/libbalise.a
done
umount -l build

# An older object without its .d would stay as it is when a header changes.
object=build/float/common/base/problem.o
make --silent "$object" > out 2>&1
printf '%s\n' '#!/bin/sh' 'case " $* " in *" -c "*) exit 1 ;; esac' 'exec gcc "$@"' > cc
make --silent -W common/base/problem.c CC="$PWD/cc" "$object" >> out 2>&1 ||
    ls "${object%.o}".* > left 2> /dev/null
check "a failed compilation leaves neither an older object nor its .d" [ -e left -a ! -s left ]
finish
