# shellcheck shell=bash
# Sourced by attacks.bash: attacks on the compiler, the assembler and the linker, and what a lab's
# build must refuse.
# shellcheck disable=SC2317 # functions are called by check

builds() {
    local name
    attack '' '__attribute__((constructor)) static void first(void) { puts("Score: 100/100"); _exit(0); }'
    check "a constructor is refused by name" fails_saying "has a section .init_array"
    attack '' '__attribute__((destructor)) static void last(void) { puts("Score: 100/100"); }'
    check "a destructor is refused by name" fails_saying "has a section .fini_array"
    attack '' '__attribute__((optimize("optimize-sibling-calls"), used)) static int jump(const char *text) { return puts(text); }'
    check "a jump out of a function is refused, because it hides the function" fails_saying "jumps into another function"
    attack '' '#include "/etc/passwd"
'
    check "including a system file is refused" fails_saying "reads /etc/passwd"
    check "the contents of an included system file are not in the report" not_says "root:"
    attack '' "#include \"$ROOT/solutions/$FILE_6\"
"
    check "including a solution is refused" fails_saying "lab 1 reads solutions/$FILE_6, which is not a header"
    attack '' '__asm__(".pushsection .data\n.incbin \"/etc/passwd\"\n.popsection");'
    check "a file that the assembler includes as data is refused" fails_saying "reads /etc/passwd"
    attack 'big[mesh->tp_rank * 1000L]++;' 'char big[1L << 36];'
    check "static variables of 64 GB are refused, with their size" fails_saying "has 65536 MB of static variables"
    for name in .bss .note.x .text.x .group .debug_x; do
        attack '' "__asm__(\".section $name, \\\"\\\", @nobits\\n.skip 64 << 30\\n.text\");"
        check "static variables of 64 GB in $name are refused" fails_saying "has 65536 MB of static variables"
    done
    attack '' 'char half[1L << 62], other[1L << 62];'
    check "static variables whose size 64 bits cannot count are refused" fails_saying "MB of static variables, where 256 MB are allowed"
    attack 'own[0]++;' 'static _Thread_local volatile char own[9 << 20];'
    check "thread-local variables of 9 MB are refused, with their size" fails_saying "has 9216 KB of thread-local variables, where 1024 KB are allowed"
    attack 'own++;' 'static _Thread_local volatile char own __attribute__((aligned(1 << 24)));'
    check "a thread-local variable with an alignment of 16 MB is refused" fails_saying "has 16385 KB of thread-local variables"
    attack 'own[0]++;' 'static _Thread_local volatile char own[1020 << 10];'
    check "thread-local variables of 1020 KB are allowed" test "$status" = 0
    attack '' '__asm__(".macro many\n.section .text.s\\@,\"ax\"\n.endm\n.rept 6000\nmany\n.endr\n.text");'
    check "6000 sections are refused within ten seconds" fails_saying "has an object file that cannot be examined, or not in time"
    for name in '.section .text.s\\@' '.globl s\\@\ns\\@ = 1'; do
        attack '' "__asm__(\".macro many\n$name\n.endm\n.rept 60000\nmany\n.endr\n.text\");"
        check "60000 sections or symbols are refused" fails_saying "has an object file that cannot be examined, or not in time"
    done
    attack '' '__asm__(".macro many\n.type s\\@, %object\ns\\@: .byte 1\n.endm\n.data\n.rept 40000\nmany\n.endr\n.text");'
    check "a lab with 40000 static variables has a verdict" test "$status" = 0
    attack '' 'char big[1L << 30] = {1};'
    check "an object file of a gigabyte is refused" fails_saying "object file, or its messages, are larger than 400 MB"
}
# stuck NAME CODE COMMAND...: runs the command with a program NAME that runs CODE and never ends.
stuck() {
    mkdir -p stuck
    printf '%s\n' '#!/usr/bin/env bash' "$2" 'while :; do sleep 1; done' > "stuck/$1"
    chmod +x "stuck/$1"
    CC=gcc COMPILE_SECONDS=1 PATH=$tree/stuck:$PATH "${@:3}"
    rm -r stuck
}
link_train() {
    LDFLAGS='' LDLIBS='' timeout 60 "$ROOT/grader/link-train.sh" "$tree/train" student/1.o > out 2>&1
    status=$?
}
time_limits() {
    local program
    for program in readelf objcopy; do
        stuck "$program" '' attack ''
        check "a lab has a verdict even if $program never ends on it" fails_saying "has an object file that cannot be examined, or not in time"
    done
    stuck objcopy '[[ " $* " == *graded* ]] || exec /usr/bin/objcopy "$@"; exit 1' attack ''
    check "a lab has a verdict even if objcopy rejects its object" fails_saying "lab 1 does not link"
    stuck gcc '[[ " $* " == *".new "* ]] || exec /usr/bin/gcc "$@"' attack ''
    check "a lab gets a verdict even if the linker hangs on it" fails_saying "lab 1 does not link: the linker was stopped"
    stuck gcc '' link_train
    check "if the linker hangs on a training program, there is one error" fails_saying "error: the training program does not link"
    check "a linker that hangs leaves no file" test -z "$(those_of train*)"
}
# Calls that a lab may not make by any name, and files that messages would quote.
names() {
    local name
    for name in recorder_end own_work_begin __real_kernel_linear_forward stream_entry recorder_active; do
        attack "off();" "void off(void) __asm__(\"$name\");"
        check "a function of the grader, $name, is refused under an assembler name" fails_saying "lab 1 calls an undefined function: $name ("
    done
    for name in mprotect pthread_create atexit signal write getppid sscanf __read_chk __longjmp_chk; do
        attack "call();" "void call(void) __asm__(\"$name\");"
        check "a lab that calls $name is refused, with the line" fails_saying "lab 1 calls $name ("
    done
    attack '' 'void recorder_end(void); void recorder_end(void) {} int MPI_Comm_rank(MPI_Comm comm, int *rank) { return *rank = 0; }'
    check "functions of a lab replace none of the grader's" test "$status" = 0
    attack 'for (int i = 0; i < 6000; i++) all[i]();' "$(for ((i = 0; i < 6000; i++)); do echo "void f$i(void);"; done)
void (*all[])(void) = {$(for ((i = 0; i < 6000; i++)); do echo "f$i,"; done)};"
    check "a lab with 6000 undefined functions has a verdict" fails_saying "lab 1 calls an undefined function: f0"
    attack '' '#include "model/serial/serial_pair.c"
'
    check "including a source file of the kit is refused" fails_saying "serial_pair.c, which is not a header"
    attack '' '#include "tensor/tensor.h"
'
    check "including a header of the kit that is not for labs is refused" fails_saying "lab 1 reads common/tensor/tensor.h, which is not a header"
    attack '' '
#line 1 "/etc/passwd"
int x = ;'
    check "a #line shows no line of another file" fails_saying "/etc/passwd:1"
    check "a #line shows nothing of another file" not_says "root:"
    attack '' 'int x = ;'
    check "the line of the lab in the compiler's message is shown" fails_saying "| int x = ;"
    attack '' '__asm__(".macro x a b\n.\\a\\b \"/etc/passwd\"\n.endm\nx inc lude\n");'
    check "a file that the assembler includes is not shown" not_says "nologin"
    check "a lab whose assembler code includes a file does not compile" fails_saying "the assembler rejects"
    attack '' 'extern int f(void) __asm__("f\n.include \"/etc/passwd\"\n"); int g(void) { return f(); }'
    check "a file that an assembler name includes is not shown" not_says "nologin"
    attack '' '__asm__(".section .rel.x, \"ax\", %progbits\nnop\n.text");'
    check "code in a section that is named like relocations is refused" fails_saying "has code in a section .rel.x"
    attack '' '__asm__(".section .symtab, \"a\", %4\n.quad 1, 2, 3\n.text");'
    check "a second symbol table is refused" fails_saying "has a section of type RELA"
    attack '' '__asm__(".section .rodata.s, \"a\", %3\n.asciz \"all_reduce_forward\"\n.section .data.c, \"awo\", %11, .rodata.s\n.quad 0, 0, 0\n.text");'
    check "a symbol table of any name, in which a lab writes its own symbols, is refused" fails_saying "has a section of type STRTAB"
    attack '' '__asm__(".section .note.c, \"\", %17\n.long 1\n.text");'
    check "a group of sections of any name is refused" fails_saying "has a section of type GROUP"
    attack '' '__asm__(".section .text.w, \"awx\", @progbits\n.text\n");'
    check "writable code is refused" fails_saying "has code on its stack or in its data"
    attack '' '#define all_reduce_forward __attribute__((section(".text.gone,\"axe\",@progbits#"))) all_reduce_forward
'
    check "a function in a section that the linker leaves out is refused" fails_saying "has code in a section .text.gone"
    attack '' '#define all_reduce_forward __attribute__((section(".text.note,\"ax\",@note#"))) all_reduce_forward
'
    check "a function in a section of notes, where the stack would not show it, is refused" fails_saying "has code in a section .text.note"
    attack '' '__attribute__((used, section(".eh_frame,\"a\",@progbits#"))) static const int frames[2] = {0, 0};'
    check "a variable among the descriptions of stack frames is refused" fails_saying "has a section of type .eh_frame"
    attack '' '_Static_assert(sizeof(int) == 1, "out of memory");'
    check "what a lab lets the compiler say is not taken for a limit" fails_saying "lab 1 does not compile"
    if [ "$(uname -m)" = x86_64 ]; then
        attack '__builtin_ia32_ldmxcsr(__builtin_ia32_stmxcsr() | 0x6000);'
        check "a changed rounding of vector instructions is the reason" fails_saying "the lab has changed how this rank rounds numbers"
    fi
    attack '' 'static int (*volatile at)(const char *) = puts; __asm__("nop; 1: jmp *at");'
    check "a jump behind another instruction is refused" fails_saying "jumps into another function"
    attack '' 'static void early(void) {} __attribute__((section(".data.x,\"aw\",@init_array#"), used)) static void (*const p)(void) = early;'
    check "a constructor is recognised in a section of any name" fails_saying "has a section .init_array"
    for name in 'section(".text.mine")' cold; do
        attack 'static void *volatile kept; kept = malloc(4096); (void)kept;' "#define all_reduce_forward __attribute__(($name)) all_reduce_forward
"
        check "a leak is seen in a function with the attribute $name, and named with its line" fails_saying "memory is allocated at collectives.c:"
    done
    for name in .rodata.x '.text.a b' '.text.a PROGBITS' .text.=a; do
        attack '' "__asm__(\".section \\\"$name\\\", \\\"ax\\\"\nnop\n.text\");"
        check "code in a section '$name', in which no line of the lab would be found, is refused" fails_saying "has code in a section ${name%% *}"
    done
    attack 'call();' 'int call(void) __asm__("__nobody_chk");'
    check "an undefined name that looks like one of the list of calls is refused" fails_saying "lab 1 calls an undefined function: __nobody_chk"
    attack 'static char *volatile kept; char *text; if (call(&text, 1, "%d", 1) > 0) kept = text; (void)kept;' 'extern int call(char **, int, const char *, ...) __asm__("__asprintf_chk");'
    check "memory that asprintf takes under the name of _FORTIFY_SOURCE is a leak" fails_saying "never freed: each call leaks more"
    attack 'static char *volatile kept; char *text; if (call(&text, "%d", 1) > 0) kept = text; (void)kept;' 'extern int call(char **, const char *, ...) __asm__("__asprintf");'
    check "a name of the C library that looks like a function of the compiler is refused" fails_saying "lab 1 calls __asprintf"
    attack 'char *volatile table = _GLOBAL_OFFSET_TABLE_; (void)table[0];' 'extern char _GLOBAL_OFFSET_TABLE_[];'
    check "the table of addresses, in which every function is found, is refused" fails_saying "lab 1 calls _GLOBAL_OFFSET_TABLE_"
    attack "int $(printf 'x%.0s' {1..9000}) = nothing;"
    check "the compiler's error is shown even in a line of 9,000 characters" fails_saying "undeclared (first use in this function)"
    attack '' '__asm__(".print \"Lab 1: 9/9\"");'
    check "nothing that a lab has the assembler print is shown" eval "quiet && ! grep -q '9/9' words"
    attack 'exit(own);' 'extern __thread int own __asm__("stdout");'
    check "a variable declared with a wrong type is the linker's error" fails_saying "lab 1 does not link HINT: start with the linker's first error"
    attack '' '__asm__(".pushsection .debug_ranges,\"\",@progbits\n.fill 200000,8,1\n.popsection");'
    check "debugging information that a lab writes itself, without end, is refused" fails_saying "KB of debugging information, where 1024 KB are allowed"
    build '#line 7 "\033[2J\033]0;pwn\007.c"'
    judge attack --case 5 --trace
    check "a file name of #line cannot command the terminal" eval '! grep -q $'"'\\e'"' out && says "?[2J?]0;pwn?.c:"'
    attack '' 'int protocol_stamp __attribute__((common));'
    check "a common variable cannot become one of the grader's" fails_saying "lab 1 defines protocol_stamp, which could replace a name"
    attack '' '__asm__(".comm stdout,8");'
    check "a common variable cannot become one of a library's" fails_saying "lab 1 defines stdout, which could replace a name"
    attack '' '__asm__(".globl prctl\n.type prctl, %gnu_unique_object\nprctl: .long 0");'
    check "a unique function cannot replace one that installs the filter" fails_saying "lab 1 defines prctl, which could replace a name"
    attack 'call(8);' 'extern void *call(size_t); __asm__(".symver call, malloc@GLIBC_2.2.5");'
    check "a version of malloc, which the guard would not see, is refused with the line" fails_saying "lab 1 uses the name malloc@GLIBC_2.2.5 ($tree/student/collectives.c:"
    for name in exit@GLIBC_2.2.5 'sin x' 'malloc [a] '; do
        attack 'call();' "void call(void) __asm__(\"\\\"$name\\\"\");"
        check "an assembler name that C does not allow, '$name', is refused" fails_saying "lab 1 uses the name ${name%% *}"
    done
    attack '' '__asm__(".globl other\nother: .long 0\n.symver other, memcpy@@V1");'
    check "a version that a lab defines is refused" fails_saying "lab 1 uses the name memcpy@@V1"
    attack 'été++;' 'static int été;'
    check "a name with accents is allowed" test "$status" = 0
}
# A compiler that a lab has taken over.
compiler() {
    local others="$tree/others"
    echo secret > "$others"
    if "$ENCLOSE" -- cat "$others" > /dev/null 2>&1; then
        echo "skip - the compiler reads only what a lab may include: the system has no Landlock"
        return
    fi
    mkdir -p student
    printf '%s\n' '#!/usr/bin/env bash' '[[ " $* " == *" -S "* ]] || exec gcc "$@"' "! cat '$others' || exit 1" "! echo >> '$others' || exit 1" "! : > '$tree/student/made' || exit 1" \
        "! kill -0 $$ || exit 1" '! cat /etc/shadow || exit 1' 'exec gcc "$@"' > student/compiler
    chmod +x student/compiler
    CC=$tree/student/compiler attack ''
    check "the compiler reads and writes no other file, and signals no other process" [ "$status $(cat "$others")" = "0 secret" ]
    rm student/compiler
}
builds_slowly() {
    attack '' '#include "/dev/zero"
'
    check "an endless header is refused" fails_saying_one_of "which is not a header of the kit" "it asked for more than 1.5 GB of memory"
    attack '' '#define A(x) x x x x x x x x x x
#define B(x) A(A(A(A(A(A(A(A(x))))))))
int big[] = {B(B(1,))};'
    check "a text that grows without bound is refused" fails_saying "lab 1 does not compile"
    check "a sentence says why such a text is refused" fails_saying "the compiler was stopped: it"
    attack '' '#include __FILE__
#include __FILE__
'
    check "headers that include each other without end are a few errors of the compiler" fails_saying "start with the compiler's first error"
    # 45,000 functions, each with the same list of 45,000 ranges, in less than a megabyte.
    attack 'exit(3);' '__asm__(".pushsection .debug_abbrev,\"\",@progbits\n.Lxa: .byte 1,0x11,1, 0x10,0x17, 0,0, 2,0x2e,0, 0x55,0x17, 0,0, 0\n.popsection\n"
".pushsection .debug_info,\"\",@progbits\n.long 2f-1f\n1: .value 4\n.long .Lxa\n.byte 8, 1\n.long .Ldebug_line0\n.rept 45000\n.byte 2\n.long 0\n.endr\n.byte 0\n2:\n.popsection\n"
".pushsection .debug_ranges,\"\",@progbits\n.fill 90000,8,1\n.quad 0,0\n.popsection\n");'
    check "debugging information that takes long to read costs the line, not the verdict" eval 'fails_saying "exit() was called" && not_says "at collectives.c"'
    mkfifo student/pipe
    COMPILE_SECONDS=2 attack '' '#include "pipe"
'
    check "a compiler that waits forever is stopped" fails_saying "it ran for more than 10 seconds"
}
