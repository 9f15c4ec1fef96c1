#!/usr/bin/env bash
# settings.sh NAME...: says which of these names, given to make on its command line, is none that a makefile asks for or the help lists.
# settings.sh --near NAME: the setting of the help that NAME was meant to be, where one is written much like it.
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." || exit
if [ "${1:-}" = --near ]; then
    grep -oE '\b[A-Z_]+=' common/setup/help.txt | tr -d = | sort -u |
        python3 -c 'import difflib, sys; print(*difflib.get_close_matches(sys.argv[1].upper(), sys.stdin.read().split(), 1))' "$2"
    exit
fi
shopt -s nullglob
files=(common/setup/help.txt Makefile grader/*.mk common/*/*.mk {grader,common,slides}/*/*.mk common/*/*/*.mk)
for name; do
    case $name in
    *[a-z]*) echo "$name" && continue ;;
    BALISE_* | BARE_* | REAL_DATA | LANG | LANGUAGE | LC_* | SETUP | OMPI_* | UCX_* | NCCL_* | CUDA_* | OMP_* | OPENBLAS_* | TMPDIR | PATH) continue ;; # of tests, the environment, a site.mk
    esac
    # NAME=, $(NAME), ${NAME}, $(if NAME ...
    grep -qE -e '(^|[^A-Za-z_])'"$name"' *[?:]*=' -e '[$][({]'"$name"'[)}:]' -e '[$][(](if|or|and|filter [^)]*,[$][(])'"$name" \
        "${files[@]}" || echo "$name"
done
