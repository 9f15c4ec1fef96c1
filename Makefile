# Balise: `make help` lists the commands.
#
# Everything that is built lies below build/. Sources are found by their place: common/<room>/*.c is the runtime, built
# in single precision with the cpu backend (libbalise.a) and in double precision with the reference backend (the judge's);
# *_main.c are programs; common/<room>/tests and grader/tests hold the tests. Labs are listed in grader/labs.mk.

include common/base/tell.mk
include common/slurm/slurm.mk

BUILD ?= build
CC = gcc
BLAS ?= openblas
MPI_CFLAGS := $(shell pkg-config --cflags ompi-c 2>/dev/null || mpicc --showme:compile 2>/dev/null)
MPI_LIBS := $(shell pkg-config --libs ompi-c 2>/dev/null || mpicc --showme:link 2>/dev/null)
XML_CFLAGS := $(shell pkg-config --cflags libxml-2.0 2>/dev/null)
BLAS_CFLAGS := $(shell pkg-config --cflags $(BLAS) 2>/dev/null)
BLAS_LIBS := $(shell pkg-config --libs $(BLAS) 2>/dev/null || echo -l$(BLAS))

# -Wno-pass-failed: clang with -O1 (SAN=1) makes no vectors of loops, and says so.
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef \
           -Wno-unused-parameter -Wno-pass-failed -Werror
OPTIMISE ?= -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast
SANITIZE ?=
CFLAGS = -std=gnu17 -g $(OPTIMISE) -fopenmp $(WARNINGS) $(SANITIZE)
CPPFLAGS = -D_GNU_SOURCE -Icommon -I. -I$(BUILD)/generated $(MPI_CFLAGS) $(BLAS_CFLAGS)
# Without -no-pie and frame pointers a line in a lab cannot be told from an address of its code. gcc alone moves parts of a
# function into another section.
IN_ONE_PIECE := $(if $(shell $(CC) --version 2>/dev/null | grep -i clang),,-fno-reorder-blocks-and-partition)
LAB_CFLAGS = -std=gnu17 -g $(if $(FOR_GDB),-O0,-O2) -Werror=return-type -Werror=incompatible-pointer-types -Werror=int-conversion \
             -Werror=implicit-function-declaration -fno-omit-frame-pointer -fno-optimize-sibling-calls $(IN_ONE_PIECE) \
             -fno-pie -Wall -Wno-unused-parameter $(SANITIZE)
LDFLAGS = -no-pie -fopenmp $(SANITIZE)
LDLIBS = $(MPI_LIBS) $(BLAS_LIBS) -lcsv -lutf8proc -lxxhash -ljansson -lm

# Of the kit; stands in what is handed in.
VERSION = 1.0

include grader/labs.mk
include common/po/words.mk

# What students are handed out has no solutions, and a lab stands on the student's own.
HANDOUT := $(if $(wildcard solutions),,yes)
ifneq ($(and $(HANDOUT),$(or $(SOLUTION),$(filter solutions,$(STACK)))),)
$(error $(shell $(TELL) stop "there are no solutions in what you were handed out" "make grade grades your labs, make train STACK=mine trains them"))
endif

# Another handout unpacked over an older one: its files may be older than what was built of that.
ifneq ($(HANDOUT),)
BUILT_OF = $(BUILD)/kit.sums
ifneq ($(shell mkdir -p $(BUILD); cmp -s grader/kit.sums $(BUILT_OF) || echo other),)
$(shell rm -rf $(addprefix $(BUILD)/,float double labs runners generated locale libbalise.a libbalise-double.a grade hand-in train stacks checked) && cp grader/kit.sums $(BUILT_OF))
endif
endif

NOT_HANDED_OUT = test test-slow test-grader test-slurm lint handout gradebook layouts bench model gpu-report slides docs
ifneq ($(and $(HANDOUT),$(filter $(NOT_HANDED_OUT),$(MAKECMDGOALS))),)
$(error $(shell $(TELL) stop "make %s is no part of what you were handed out" "make help lists what is" '$(firstword $(filter $(NOT_HANDED_OUT),$(MAKECMDGOALS)))'))
endif

# What is asked before anything is installed must work; for all else one sentence is better than a compiler's first error.
WORKS_BARE = clean setup doctor help demo test test-slow test-slurm data start lint slides docs
ifneq ($(filter-out $(WORKS_BARE),$(or $(MAKECMDGOALS),all)),)
ifeq ($(shell command -v $(firstword $(CC))),)
$(error $(shell $(TELL) stop "there is no compiler, %s" "make setup installs what is missing, make doctor says what that is" '$(firstword $(CC))'))
endif
ifeq ($(MPI_LIBS),)
$(error $(shell $(TELL) stop "MPI is not installed" "make setup installs what is missing, make doctor says what that is"))
endif
ifneq ($(shell mkdir -p $(call quoted,$(BUILD)) 2> /dev/null && test -w $(call quoted,$(BUILD)) && echo yes),yes)
$(error $(shell $(TELL) stop "nothing can be written into the folder %s" "work on a copy of the kit in a folder of your own; df . shows a full disk" $(call quoted,$(BUILD))))
endif
ifneq ($(and $(TMPDIR),$(shell test -d "$$TMPDIR" && test -w "$$TMPDIR" || echo no)),)
$(error $(shell $(TELL) stop "TMPDIR='%s' is no folder that can be written" "unset TMPDIR, or make that folder" $(call quoted,$(TMPDIR))))
endif
endif

# What stands on the command line and is no setting was meant to be one: every name that is one stands in the help or in a makefile.
ifeq ($(MAKELEVEL),0)
SET_BY_HAND := $(foreach name,$(.VARIABLES),$(if $(filter command%,$(origin $(name))),$(name)))
NO_SETTING := $(if $(SET_BY_HAND),$(shell common/setup/settings.sh $(SET_BY_HAND)))
ifneq ($(NO_SETTING),)
MEANT := $(shell common/setup/settings.sh --near $(call quoted,$(firstword $(NO_SETTING))))
ifneq ($(MEANT),)
$(error $(shell $(TELL) stop "there is no setting %s" "%s is one; make help lists them" $(call quoted,$(firstword $(NO_SETTING))) $(MEANT)))
endif
$(error $(shell $(TELL) stop "there is no setting %s" "make help lists them; they are in capitals" $(call quoted,$(firstword $(NO_SETTING)))))
endif
endif
ifneq ($(filter-out mine solutions serial,$(STACK)),)
ifneq ($(filter grade trace report debug watch,$(MAKECMDGOALS)),)
$(error $(shell $(TELL) stop "there is no stack '%s'" "STACK=mine grades a lab on your own earlier ones; without STACK it stands on the reference" $(call quoted,$(STACK))))
endif
endif

# ---- what there is --------------------------------------------------------------------------------------------------

RUNTIME := $(filter-out %_main.c,$(wildcard $(addsuffix /*.c,$(addprefix common/,base data tensor backend backend/host backend/cpu comm comm/only_mpi mesh \
             autograd model optim checkpoint train))))
SERIAL := $(wildcard common/model/serial/*.c)
DOUBLE := $(filter-out %_main.c common/autograd/pairs.c common/autograd/raw.c common/autograd/collectives.c,$(wildcard \
             common/base/*.c common/tensor/*.c $(addprefix common/backend/,*.c host/*.c reference/*.c) common/autograd/*.c common/comm/*.c common/comm/only_mpi/*.c common/model/*.c \
             common/train/buckets.c common/train/table_rows.c common/data/permutation.c))
JUDGE := $(wildcard grader/judge/*.c grader/judge/*/*.c grader/judge/report/formats/*.c)
SCENARIOS := $(wildcard grader/labs/*.c)
RUNNER := $(wildcard grader/runner/*.c)

float = $(patsubst %.c,$(BUILD)/float/%.o,$(1))
double = $(patsubst %.c,$(BUILD)/double/%.o,$(1))
lab_file = $(LAB_$(1)_FOLDER)/$(LAB_$(1)_FILE)
nn = $(if $(filter 1 2 3 4 5 6 7 8 9,$(1)),0)$(1)

# Lab 9 has none: it begins from the student's lab 1.
START_FILES = $(foreach lab,$(filter-out 9,$(LABS)),grader/start/$(call lab_file,$(lab)))

.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(V),)
.SILENT:
endif

# What an editor (clangd) has to know of each file: it finds this one in build/.
EDITED = $(foreach lab,$(LABS),$(wildcard labs/$(call lab_file,$(lab)) solutions/$(call lab_file,$(lab)))) $(RUNTIME) $(JUDGE) $(SCENARIOS) $(RUNNER)
UNKNOWN_TO_CLANG = -fno-reorder-blocks-and-partition -fopenmp
command_of = {"directory": "$(CURDIR)", "file": "$(1)", "command": "cc $(filter-out $(UNKNOWN_TO_CLANG),$(if $(filter labs/% solutions/%,$(1)),$(LAB_CFLAGS) -Icommon $(MPI_CFLAGS),$(CFLAGS) $(CPPFLAGS))) -c $(1)"}
$(BUILD)/compile_commands.json: Makefile grader/labs.mk
	$(shell mkdir -p $(@D))$(file >$@.new,[$(subst } {,}$(comma) {,$(strip $(foreach file,$(EDITED),$(call command_of,$(file)))))])
	mv $@.new $@

.PHONY: build all
all: build | $(CATALOGUES)
	common/setup/help.sh
build: $(BUILD)/compile_commands.json $(BUILD)/generated/labs.json $(if $(HANDOUT),,$(BUILD)/train) $(BUILD)/tokenize $(BUILD)/checkpoint

include common/backend/backend.mk

$(BUILD)/float/%.o: %.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/double/%.o: %.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -DBALISE_DOUBLE -MMD -MP -c $< -o $@

$(BUILD)/libbalise.a: $(call float,$(RUNTIME))
	rm -f $@
	ar rcs $@ $^

$(BUILD)/libbalise-double.a: $(call double,$(DOUBLE))
	rm -f $@
	ar rcs $@ $^

# What grader/labs.mk says, for the records in grader/labs.
define lab_declarations
#define LAB_FILES_$(call nn,$(1)) .number = $(1), .folder = "$(LAB_$(1)_FOLDER)", .file = "$(LAB_$(1)_FILE)", .needs = "$(LAB_$(1)_NEEDS)"
ScenarioFunction scenario_$(call nn,$(1));
extern Lab lab_$(call nn,$(1));

endef
$(BUILD)/generated/labs.h: grader/labs.mk Makefile
	$(shell mkdir -p $(@D))$(file >$@,$(foreach lab,$(LABS),$(call lab_declarations,$(lab))))
	$(file >>$@,#define LABS $(foreach lab,$(LABS),&lab_$(call nn,$(lab)),))

# ---- the labs: start files, objects, runners ------------------------------------------------------------------------

# A start file is also what the slot is before the lab, where that works.
start_object = $(call $(2),grader/start/$(call lab_file,$(1)))

# What a student's lab was compiled of, by its contents: a file that comes back may be older than what was built meanwhile, and another of the
# lab's folder may be included.
# A lab's object: compiled with the student in mind, only its exports visible, its code in a section of its own. What goes
# wrong is written to NN.failed, for the judge to say; for a solution it ends make.
LAB_OBJECTS = $(BUILD)/labs$(FOR_GDB)
define lab_rules
$(LAB_OBJECTS)/student/$(1).sources: always
	mkdir -p $$(@D)
	(cd labs/$(LAB_$(1)_FOLDER) 2> /dev/null && find . -maxdepth 1 -type f ! -name '*.md' ! -name '*~' ! -name '*.c.[0-9]*' ! -name '.*' -exec sha256sum {} +) | sort > $$@.new
	if cmp -s $$@.new $$@; then rm -f $$@.new; else mv $$@.new $$@; fi
$(LAB_OBJECTS)/student/$(1).o: $(LAB_OBJECTS)/student/$(1).sources grader/compile-lab.sh grader/labs.mk common/balise.h common/balise_mpi.h
	mkdir -p $$(@D)
	CC='$(CC)' CFLAGS='$(LAB_CFLAGS) -Icommon $(MPI_CFLAGS)' grader/compile-lab.sh $(1) labs/$(call lab_file,$(1)) $$@ '$(LAB_$(1)_EXPORTS)' || true
$(LAB_OBJECTS)/solution/$(1).o: solutions/$(call lab_file,$(1)) grader/compile-lab.sh grader/labs.mk common/balise.h common/balise_mpi.h
	mkdir -p $$(@D)
	CC='$(CC)' CFLAGS='$(LAB_CFLAGS) -Icommon $(MPI_CFLAGS)' grader/compile-lab.sh $(1) $$< $$@ '$(LAB_$(1)_EXPORTS)' || { cat $$@.failed; false; }
endef
$(foreach lab,$(LABS),$(eval $(call lab_rules,$(lab))))

# STACK=mine: a lab stands on the student's own earlier labs where these were started.
STACK ?= $(if $(HANDOUT),mine)
# asked once a lab, and only where it matters
is_started = $(shell grader/started.sh labs/$(call lab_file,$(1)) $(if $(filter 9,$(1)),labs/$(call lab_file,1),grader/start/$(call lab_file,$(1))) && echo yes)
ifneq ($(filter mine,$(STACK))$(filter start,$(MAKECMDGOALS)),)
$(foreach lab,$(LABS),$(eval started_$(lab) := $(call is_started,$(lab))))
endif
started = $(started_$(1))
# Who stands in for a lab that is not started: the reference; or, handed out, an object that came with it, or nobody.
GIVEN = grader/given/$(shell uname -m)
stand_in = $(if $(HANDOUT),$(if $(wildcard $(GIVEN)/$(1).o),given,missing),solution)
author_of = $(if $(and $(filter mine,$(STACK)),$(call started,$(1))),student,$(stand_in))

define stand_in_rules
$(LAB_OBJECTS)/given/$(1).o: $(GIVEN)/$(1).o
	mkdir -p $$(@D)
	cp $$< $$@
$(LAB_OBJECTS)/missing/$(1).o:
	mkdir -p $$(@D)
	{ printf 'waits: '; $$(TELL) line "it stands on lab %s, which is not started" "make grade LAB=%s comes first" $(1) $(1); } > $$@.failed
	: > $$@
endef
$(if $(HANDOUT),$(foreach lab,$(LABS),$(eval $(call stand_in_rules,$(lab)))))

# What the judge and a runner must have in common to understand each other: records, calls, inputs and their order.
PROTOCOL := grader/protocol.h grader/calls.h grader/label.h $(wildcard grader/labs/*.[ch]) common/balise.h $(wildcard common/base/philox.[ch])
$(BUILD)/generated/protocol_checksum.h: $(PROTOCOL)
	mkdir -p $(@D)
	printf '#define PROTOCOL_CHECKSUM "%.16s"\n' "$$(cat $^ | sha256sum)" > $@
$(call float,grader/labs/stamp.c) $(call double,grader/labs/stamp.c): $(BUILD)/generated/protocol_checksum.h
# The kernels whose multiply-adds the grader counts, in the runner and in the judge.
COUNTED_KERNELS = $(addprefix kernel_linear_,forward backward_input backward_weight) $(addprefix kernel_attention_,forward backward)
comma := ,
counted = $(addprefix -Wl$(comma)--wrap=,$(COUNTED_KERNELS))
# gold, of the same package, needs half of ld's time, and a student waits for it after each edit.
FASTER_LINKER := $(if $(shell command -v ld.gold),-fuse-ld=gold)
RUNNER_LDFLAGS = $(LDFLAGS) $(FASTER_LINKER) $(counted) -Wl,--wrap=tensor_data -Wl,--export-dynamic-symbol=sched_yield
# Of the scenarios a runner takes that of its lab.
$(BUILD)/scenarios.a: $(call float,$(SCENARIOS))
	rm -f $@
	ar rcs $@ $^
RUNNER_PARTS = $(call float,$(RUNNER)) $(BUILD)/scenarios.a
RUNNERS = $(BUILD)/runners$(OF_BACKEND)$(FOR_GDB)
# What a program is linked of may change without any of it being newer (make start): the list has a file of its own.
.PHONY: always
define list_rule
$(1).list: always
	mkdir -p $$(@D)
	printf '%s\n' '$(2)' | cmp -s - $$@ || printf '%s\n' '$(2)' > $$@
endef
# runner_rules LAB AUTHOR LABS BENEATH: the runner of the author's lab, with the objects of those that it stands on.
define runner_rules
$(call list_rule,$(RUNNERS)/$(call nn,$(1))-$(2),$(3))
$(RUNNERS)/$(call nn,$(1))-$(2): $(RUNNERS)/$(call nn,$(1))-$(2).list $(LAB_OBJECTS)/$(if $(filter solution,$(2)),solution,student)/$(1).o $(3) \
        $(foreach n,$(LAB_$(1)_BESIDE),$(call start_object,$(n),float)) $(RUNNER_PARTS) $(LIBRARY) grader/link-runner.sh
	mkdir -p $$(@D)
	CC='$(CC)' LDFLAGS='$(RUNNER_LDFLAGS)' LDLIBS='$(LDLIBS)' grader/link-runner.sh $(1) $$@ $$(filter %.o %.a,$$^)
endef
mine_labs = $(foreach n,$(LAB_$(1)_NEEDS),$(LAB_OBJECTS)/$(call author_of,$(n))/$(n).o)
reference_labs = $(if $(HANDOUT),$(mine_labs),$(foreach n,$(LAB_$(1)_NEEDS),$(LAB_OBJECTS)/solution/$(n).o))
$(foreach lab,$(LABS),$(foreach author,student solution,$(eval $(call runner_rules,$(lab),$(author),$(call reference_labs,$(lab))))))
ifeq ($(STACK),mine)
$(foreach lab,$(LABS),$(eval $(call runner_rules,$(lab),mine,$(call mine_labs,$(lab)))))
endif

SUSPECT_WORDS = attention gelu linear dropout_with add first_token layer_norm layer_norm_new parameter
$(BUILD)/grade $(BUILD)/train $(BUILD)/gradebook $(BUILD)/hand-in: | $(CATALOGUES)
# All but its main: the gradebook and the hand-in know the labs and their checks by it.
$(BUILD)/judge.a: $(call double,$(filter-out grader/judge/main.c,$(JUDGE)) $(SERIAL) $(SCENARIOS)) \
        $(foreach lab,5 7 11,$(call start_object,$(lab),double))
	rm -f $@
	ar rcs $@ $^
JUDGE_LDFLAGS = $(LDFLAGS) $(counted) $(addprefix -Wl$(comma)--wrap=,$(SUSPECT_WORDS))
JUDGE_PARTS = $(BUILD)/judge.a $(BUILD)/libbalise-double.a
$(BUILD)/grade: $(call double,grader/judge/main.c) $(JUDGE_PARTS)
	$(CC) $(JUDGE_LDFLAGS) $< -Wl,--start-group $(JUDGE_PARTS) -Wl,--end-group -o $@ $(MPI_LIBS) -ljansson -lxml2 -lutf8proc -lm
# The labs with their titles and points, for scripts.
$(BUILD)/generated/labs.json: $(BUILD)/grade
	$(BUILD)/grade --list > $@
$(call double,$(wildcard grader/judge/report/formats/*.c)): CPPFLAGS += $(XML_CFLAGS)
$(call double,$(JUDGE) $(SCENARIOS)) $(call float,$(SCENARIOS)): | $(BUILD)/generated/labs.h

# ---- grading --------------------------------------------------------------------------------------------------------

AUTHOR = $(if $(SOLUTION),solution,$(if $(filter mine,$(STACK)),mine,student))
GRADED = $(if $(LAB),$(filter $(LAB),$(LABS)),$(LABS))
# What a lab stands on with STACK=mine, and these labs alone, to say which of them does not pass.
OWN = $(if $(filter mine,$(AUTHOR)),$(strip $(foreach lab,$(LABS),$(if $(filter student,$(call author_of,$(lab))),$(lab)))))
BELOW = $(if $(OWN),$(filter $(OWN),$(sort $(foreach lab,$(GRADED),$(LAB_$(lab)_NEEDS)))))
.PHONY: grade runners checked-runners
runners: $(foreach lab,$(BELOW),$(RUNNERS)/$(call nn,$(lab))-student) $(foreach lab,$(GRADED),$(RUNNERS)/$(call nn,$(lab))-$(AUTHOR))
# SAN=1: the lab, the kit and the runner with sanitizers, in a build of their own. A report does not end a rank: the runner does.
checked-runners:
	$(MAKE) BUILD=$(BUILD)/checked OPTIMISE=-O1 runners \
	    SANITIZE='-fsanitize=address,undefined -fsanitize-recover=address,undefined -fno-omit-frame-pointer'
.PHONY: as-handed-out
as-handed-out:
	grader/handout/changed.sh
GRADED_RUNNERS = $(BUILD)$(if $(SAN),/checked)/runners$(OF_BACKEND)
BEGAN := $(if $(V),$(shell date +%s.%N))
GPU_SEEN = $(if $(and $(ON),$(GPU_PROBE)),$(BUILD)/kernels$(OF_BACKEND))
grade: $(if $(HANDOUT),as-handed-out) $(or $(GPU_SEEN),$(GPU_PROBE)) $(BUILD)/grade $(if $(SAN),checked-,)runners
	$(if $(KEEP_VERDICT),mkdir -p $(BUILD)/verdicts)
	$(if $(and $(ON),$(LAB),$(UNKNOWN)),$(refuse_unknown))
	$(if $(ON),JOB_PROBE='$(GPU_SEEN)' $(ON_SLURM) grade )$(BUILD)/grade --author $(AUTHOR) --runners $(GRADED_RUNNERS) $(if $(SAN),--sanitized) --own '$(OWN)' $(if $(LAB),--lab $(call quoted,$(LAB))) \
	    $(if $(SEED),--seed $(call quoted,$(SEED))) $(if $(CASE),--case $(call quoted,$(CASE))) $(if $(SANDBOX),--sandbox $(call quoted,$(SANDBOX))) \
	    $(GPU_OPTION) $(if $(V),--since $(BEGAN)) $(patsubst %,--cases %,$(wildcard grader/cases.local)) $(KEEP_VERDICT) $(if $(FORMAT),--format $(call quoted,$(FORMAT))) $(if $(OUT),--out "$$OUT")

include grader/loop/loop.mk

# The calls of MPI of one case, ranks as columns.
.PHONY: trace
trace: $(GPU_PROBE) $(BUILD)/grade $(if $(LAB),$(foreach lab,$(GRADED),$(RUNNERS)/$(call nn,$(lab))-$(AUTHOR)))
	$(BUILD)/grade --trace $(GPU_OPTION) --author $(AUTHOR) --runners $(RUNNERS) $(if $(LAB),--lab $(call quoted,$(LAB))) $(SHOWN)

# One case as a page: who holds what, which elements are wrong, who calls what.
.PHONY: report
report: $(GPU_PROBE) $(BUILD)/grade $(if $(LAB),$(foreach lab,$(GRADED),$(RUNNERS)/$(call nn,$(lab))-$(AUTHOR)))
	mkdir -p $(BUILD)/report
	$(if $(LAB),$(MAKE_PAGE)lab.py begin $(call PAGE,lab$(LAB)))
	$(BUILD)/grade --report $(BUILD)/report/lab.json $(GPU_OPTION) --author $(AUTHOR) --runners $(RUNNERS) $(if $(LAB),--lab $(call quoted,$(LAB))) $(SHOWN)
	$(MAKE_PAGE)lab.py $(BUILD)/report/lab.json $(call PAGE,lab$(LAB))

# A lab number that does not exist is one error; nothing else is built for it.
UNKNOWN = $(if $(filter 1,$(words $(LAB))),$(filter-out $(LABS),$(LAB)),$(LAB))
refuse_lab_9 = $(TELL) error "lab 9 begins from your own lab 1, which is not started" "make grade LAB=1"
refuse_unknown = $(TELL) error "there is no lab '%s'" "the labs are: %s" $(call quoted,$(LAB)) '$(LABS)'
.PHONY: start
start_of = $(if $(filter 9,$(1)),labs/$(call lab_file,1),grader/start/$(call lab_file,$(1)))
start: $(if $(and $(LAB),$(if $(UNKNOWN),,known)),$(call start_of,$(LAB)))
	$(if $(LAB),,$(TELL) error "which lab?" "make start LAB=2; the labs are: %s" '$(LABS)')
	$(if $(UNKNOWN),$(refuse_unknown))
	$(if $(filter 9,$(LAB)),$(if $(call started,1),,$(refuse_lab_9)))
	grader/start-lab.sh labs/$(call lab_file,$(LAB)) $(call start_of,$(LAB))

-include $(wildcard grader/tests.mk)

# ---- handing in, grading many -----------------------------------------------------------------------------------------

BOOK_LIBS = -larchive -ljansson -lxml2 -lxxhash -lcsv -lutf8proc $(MPI_LIBS) -lm
# Whose labs and words: a handout that is older than its instructor's points, start files or header is told from the one of today.
$(BUILD)/generated/kit_version.h: $(wildcard grader/labs/lab[0-9]*.c) grader/labs.mk common/balise.h common/balise_mpi.h $(START_FILES)
	mkdir -p $(@D)
	printf '#define BALISE_VERSION "$(VERSION)+%.8s"\n' "$$(cat $^ | sha256sum)" > $@
$(call double,$(wildcard grader/gradebook/*.c)): $(BUILD)/generated/kit_version.h
$(call double,$(wildcard grader/gradebook/*.c)): CPPFLAGS += -include $(BUILD)/generated/kit_version.h
HAND_IN = $(call double,$(addprefix grader/gradebook/,hand_in.c manifest.c files.c))
$(BUILD)/hand-in: $(HAND_IN) $(JUDGE_PARTS)
	$(CC) $(JUDGE_LDFLAGS) $(HAND_IN) -Wl,--start-group $(JUDGE_PARTS) -Wl,--end-group -o $@ $(BOOK_LIBS)
GRADEBOOK = $(call double,$(filter-out grader/gradebook/hand_in.c,$(wildcard grader/gradebook/*.c)))
$(BUILD)/gradebook: $(GRADEBOOK) $(JUDGE_PARTS)
	$(CC) $(JUDGE_LDFLAGS) $(GRADEBOOK) -Wl,--start-group $(JUDGE_PARTS) -Wl,--end-group -o $@ $(BOOK_LIBS)

# All that a verdict depends on beside the student's file.
$(BUILD)/generated/kit.txt: $(BUILD)/generated/grading.sh $(BUILD)/grade grader/compile-lab.sh grader/link-runner.sh grader/gradebook/grade-one.sh \
        $(sort $(foreach lab,$(LABS),$(call test_objects,$(lab)))) $(START_FILES) common/balise.h common/balise_mpi.h
	cat $^ | sha256sum | cut -c 1-64 > $@

.PHONY: hand-in gradebook
hand-in: $(BUILD)/hand-in
	mkdir -p $(BUILD)/hand-in-files
	$(BUILD)/hand-in --name "$(if $(filter command%,$(origin NAME)),$$NAME)" --out "$${OUT:-$(BUILD)/hand-in-files/$$NAME.tar.gz}"

# What students get. list-labs: their files, for the script.
.PHONY: handout list-labs
list-labs:
	echo '$(foreach lab,$(LABS),$(call lab_file,$(lab)))'
handout: | $(CATALOGUES)
	GIVEN_CFLAGS='$(filter-out -g,$(LAB_CFLAGS)) -Icommon $(MPI_CFLAGS)' GIVEN_EXPORTS='$(LAB_1_EXPORTS)' grader/handout/handout.sh $(BUILD) $(INDEPENDENT)

gradebook: $(BUILD)/gradebook $(BUILD)/generated/kit.txt
	$(BUILD)/gradebook --build $(BUILD) --dir "$$DIR" --out "$$OUT" $(if $(SEED),--seed $(call quoted,$(SEED))) \
	    $(if $(filter command% environment%,$(origin JOBS)),--jobs $(call quoted,$(JOBS))) $(if $(SANDBOX),--sandbox $(call quoted,$(SANDBOX))) $(patsubst %,--cases %,$(wildcard grader/cases.local))

# ---- training -------------------------------------------------------------------------------------------------------

# At stage n (after lab n) a slot is provided by the highest lab up to n in its chain, or else by what the slot is before any
# lab. UPTO goes back to an earlier stage; without it, the last one whose labs are all there.
STAGES = 5 7 9 11
BAD_STAGE = $(if $(UPTO),$(if $(and $(filter 1,$(words $(UPTO))),$(filter $(LABS),$(UPTO))),,bad))
NEEDED_5 = 1 2 3 4 5
NEEDED_7 = 1 3 4 6 7
NEEDED_9 = 3 4 6 7 8 9
NEEDED_11 = 3 4 6 7 8 9 10 11
all_started = $(if $(filter-out $(foreach n,$(NEEDED_$(1)),$(if $(call started,$(n)),$(n))),$(NEEDED_$(1))),,$(1))
MY_STAGE = $(or $(lastword $(foreach stage,$(STAGES),$(call all_started,$(stage)))),0)
STAGE = $(if $(filter serial,$(STACK)),0,$(or $(UPTO),$(if $(filter mine,$(STACK)),$(MY_STAGE),$(lastword $(LABS)))))
from = $(filter $(1),$(wordlist 1,$(if $(BAD_STAGE),0,$(STAGE)),1 2 3 4 5 6 7 8 9 10 11))
lab_object = $(LAB_OBJECTS)/$(call author_of,$(1))/$(1).o
plain = $(BUILD)/float/common/model/serial/$(1).o
# slot: this lab's object from its stage on, what the slot is before the lab until then
slot = $(if $(call from,$(1)),$(call lab_object,$(1)),$(2))
TRAIN_PARTS = $(if $(call from,9),$(call lab_object,9),$(call slot,1)) $(call slot,3,$(call plain,embedding)) \
    $(call slot,4,$(call plain,attention)) \
    $(if $(call from,7),$(call lab_object,6) $(call lab_object,7),$(call slot,5,$(call start_object,5,float)) \
        $(if $(call from,5),$(call lab_object,2)) $(call start_object,7,float)) \
    $(foreach lab,8 10 11,$(call slot,$(lab),$(call start_object,$(lab),float)))
# Of the student's labs, those that belong to a later stage; and what is missing for the next one.
NEXT_STAGE_0 = 5
NEXT_STAGE_5 = 7
NEXT_STAGE_7 = 9
NEXT_STAGE_9 = 11
TOO_EARLY = $(strip $(foreach n,$(LABS),$(if $(call started,$(n)),$(if $(call from,$(n)),,$(n)))))
LACKING = $(strip $(foreach n,$(NEEDED_$(NEXT_STAGE_$(STAGE))),$(if $(call started,$(n)),,$(n))))
# The labs in it, and those of them that the student has not started.
TRAIN_LABS = $(filter $(patsubst %.o,%,$(notdir $(filter $(LAB_OBJECTS)/%,$(TRAIN_PARTS)))),$(LABS))
referenced = $(strip $(foreach lab,$(TRAIN_LABS),$(if $(filter solution,$(call author_of,$(lab))),$(lab))))
TRAIN = $(if $(STACK)$(UPTO),$(BUILD)/stacks/$(or $(STACK),solutions)-$(STAGE)/train,$(BUILD)/train)$(OF_BACKEND)

$(eval $(call list_rule,$(TRAIN),$(TRAIN_PARTS)))
# What AMP=bf16 opens; made where oneDNN's header is there.
ONEDNN := $(if $(wildcard $(addsuffix /dnnl.h,/usr/include $(subst :, ,$(CPATH)))),$(BUILD)/balise-onednn.so)
$(call float,common/backend/cpu/products.c): CPPFLAGS += -DONEDNN_FILE='"$(abspath $(BUILD))/balise-onednn.so"'
ONEDNN_OBJECT = $(if $(ONEDNN),$(call float,common/backend/onednn/onednn.c))
$(ONEDNN_OBJECT): CFLAGS += -fPIC
$(BUILD)/balise-onednn.so: $(ONEDNN_OBJECT)
	$(CC) $(filter-out -no-pie,$(LDFLAGS)) -shared $^ -o $@ -ldnnl

$(TRAIN): $(TRAIN).list $(TRAIN_PARTS) $(BUILD)/float/common/train/train_main.o $(LIBRARY) grader/link-train.sh | $(ONEDNN)
	mkdir -p $(@D)
	CC='$(CC)' LDFLAGS='$(LDFLAGS)' LDLIBS='$(LDLIBS)' grader/link-train.sh $@ $(filter %.o %.a,$^)

$(BUILD)/tokenize: $(BUILD)/float/common/data/tokenize_main.o $(BUILD)/libbalise.a
	$(CC) $(LDFLAGS) $^ -o $@ -lutf8proc -lm

$(BUILD)/checkpoint: $(BUILD)/float/common/checkpoint/checkpoint_main.o $(BUILD)/libbalise.a
	$(CC) $(LDFLAGS) $^ -o $@ -ljansson -lm

NTASKS ?= 1
# REPORT=1: a page of the run, out of its trace and metrics; these are kept where they are named.
REPORTED = $(filter-out 0,$(REPORT))
METRICS_FILE = $(or $(METRICS),$(if $(REPORTED),$(BUILD)/report/metrics.jsonl))
TRACE_FILE = $(or $(TRACE),$(if $(REPORTED),$(BUILD)/report/trace.json))
PAGE = "$${OUT:-$(BUILD)/report/$(1).html}"
MAKE_PAGE = PYTHONDONTWRITEBYTECODE=1 common/page/
option = $(if $($(2)),--$(1) $(call quoted,$($(2))))
TRAIN_OPTIONS = $(call option,tp,TP) $(call option,epochs,EPOCHS) $(call option,samples,SAMPLES) $(call option,model,MODEL) \
    $(call option,layers,LAYERS) $(call option,hidden-dim,HIDDEN_DIM) $(call option,heads,HEADS) \
    $(call option,batch-size,BATCH_SIZE) $(call option,seq,SEQ) $(call option,data,DATA) \
    $(if $(DATA),--test $(call quoted,$(TEST)),$(call option,test,TEST)) $(call option,vocab,VOCAB) $(call option,steps,STEPS) \
    $(call option,lr,LR) $(call option,warmup,WARMUP) $(call option,decay,DECAY) $(call option,clip,CLIP) \
    $(call option,accumulate,ACCUMULATE) $(call option,check,CHECK) $(call option,map,MAP) $(call option,profile,PROFILE) $(call option,seed,SEED) $(call option,dropout,DROPOUT) $(call option,mem,MEM) \
    $(call option,metrics,METRICS_FILE) $(call option,trace,TRACE_FILE) $(call option,amp,AMP) $(call option,optimizer,OPTIMIZER) $(call option,weight-decay,WEIGHT_DECAY) \
    $(call option,eps,EPS) $(call option,positions,POSITIONS) $(call option,threads,THREADS) \
    $(call option,save,SAVE) $(call option,every,EVERY) $(call option,resume,RESUME)

# One model at every layout, as a table; DATA= and VOCAB= as in make train.
.PHONY: layouts
layouts: $(BUILD)/train $(BUILD)/checkpoint | $(CATALOGUES)
	DATA=$(call quoted,$(DATA)) VOCAB=$(call quoted,$(VOCAB)) common/train/layouts.sh $(BUILD)

# Never a test: prints what this machine does. On GPUs NCCL's rows are left out where it cannot be linked.
.PHONY: bench bench-programs bench-over-nccl
$(BUILD)/bench-kernels$(OF_BACKEND): $(call float,$(wildcard common/backend/bench/*.c) common/tests/stop_at_misuse.c) $(LIBRARY)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
$(BUILD)/bench-collectives$(OF_BACKEND): $(call float,common/comm/bench_main.c common/tests/stop_at_misuse.c) $(LIBRARY)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
BENCH_PROGRAMS = $(patsubst %,$(BUILD)/%$(OF_BACKEND),bench-kernels bench-collectives train)
ifeq ($(ON_GPU),)
bench-programs: $(BENCH_PROGRAMS) $(BUILD)/grade $(BUILD)/tokenize
else
bench-programs: $(GPU_PROBE)
	$(MAKE) TRANSPORT=mpi $(patsubst %,$(BUILD)/%-$(BACKEND),kernels bench-kernels bench-collectives train)
	$(MAKE) TRANSPORT=mpi STACK=serial $(BUILD)/stacks/serial-0/train-$(BACKEND)
	$(if $(filter mpi,$(BENCH_TRANSPORT)),,$(MAKE) TRANSPORT=nccl bench-over-nccl $(if $(OVER_NCCL),,|| true))
bench-over-nccl: $(BENCH_PROGRAMS)
endif
# Both, where nothing was said.
BENCH_TRANSPORT = $(if $(filter file,$(origin TRANSPORT)),,$(TRANSPORT))
bench: bench-programs
	$(foreach name,BACKEND ONLY AMP VS TORCH SAVE COMPARE MODELS STEPS PEAK,$(name)=$(call quoted,$($(name)))) TRANSPORT='$(BENCH_TRANSPORT)' \
	    common/bench/bench.py $(BUILD)

# On paper: which layout, on how many ranks, of which machine?
.PHONY: model
model: $(if $(ON_GPU),bench-programs,$(BUILD)/bench-collectives $(BUILD)/train)
	$(foreach name,BACKEND TP MODEL LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE AMP CLUSTER WEAK,$(name)=$(call quoted,$($(name)))) NTASKS=$(call quoted,$(filter-out 1,$(NTASKS))) \
	    common/bench/model.py $(BUILD)

# Curves of runs, from what METRICS= has written.
.PHONY: plot
plot: | $(CATALOGUES)
	METRICS="$$METRICS" Y=$(call quoted,$(Y)) OUT="$$OUT" PYTHONDONTWRITEBYTECODE=1 common/plot/plot.py

# make sbatch: the same as a job of Slurm's; with JOB=n it waits for one that was submitted before.
.PHONY: train sbatch
ifneq ($(call said,JOB),)
sbatch:
	$(ON_SLURM) wait $(call quoted,$(JOB))
endif
train $(if $(call said,JOB),,sbatch): $(if $(filter-out solutions mine serial,$(STACK)),no-such-stack,$(if $(BAD_STAGE),no-such-stage,$(TRAIN)))
	$(if $(filter mine,$(STACK)),common/train/stack.sh '$(filter-out $(call referenced,),$(TRAIN_LABS))' '$(call referenced,)' '$(if $(UPTO),,$(TOO_EARLY))' $(call quoted,$(LACKING)))
	$(if $(REPORTED),mkdir -p $(BUILD)/report && rm -f $(BUILD)/report/metrics.jsonl $(BUILD)/report/trace.json && $(MAKE_PAGE)training.py begin $(call PAGE,train))
	$(if $(filter sbatch,$@),$(ON_SLURM) train,common/train/launch.sh) $(call quoted,$(NTASKS)) $(call quoted,$(or $(STACK),solutions)) '$(STAGE)' $(TRAIN) $(TRAIN_OPTIONS) --cache $(BUILD)/cache
	$(if $(REPORTED),$(MAKE_PAGE)training.py $(call quoted,$(TRACE_FILE)) $(call quoted,$(METRICS_FILE)) $(call PAGE,train))

.PHONY: no-such-stack no-such-stage
no-such-stage:
	$(TELL) error "UPTO cannot be '%s'" "it is the number of a lab: %s" $(call quoted,$(UPTO)) '$(LABS)'
no-such-stack:
	$(TELL) error "there is no stack '%s'" "STACK=solutions, STACK=mine or STACK=serial" $(call quoted,$(STACK))

# ---- setting up, looking around -------------------------------------------------------------------------------------

.PHONY: setup doctor data demo help clean
setup doctor data help: | $(CATALOGUES)
setup:
	common/setup/setup.sh core
	$(TELL) line "setup: what the labs need is there (make doctor shows it)" ""

doctor:
	common/setup/doctor.sh

data:
	common/setup/setup.sh core data
	data/download.sh

# A sub-make, so that what pkg-config and mpicc say is asked after they are there.
demo:
	common/setup/setup.sh core
	$(if $(HANDOUT),,$(MAKE) build grade SOLUTION=1)
	$(MAKE) train $(if $(HANDOUT),STACK=serial NTASKS=1 TP=1,NTASKS=2 TP=2) LAYERS=2 HIDDEN_DIM=128 HEADS=4 BATCH_SIZE=16 SEQ=64 LR=1e-3 EPOCHS=1

help:
	common/setup/help.sh

# All that was built, and what was graded last; labs/ stays.
clean:
	rm -rf $(call quoted,$(BUILD))

# The course.
-include $(wildcard slides/slides.mk)

# The reference.
-include $(wildcard common/setup/docs/docs.mk)

-include $(shell find $(BUILD)/float $(BUILD)/double -name '*.d' 2>/dev/null)
-include $(wildcard common/tests/tests.mk)

# The first time takes a while, and says so.
ifneq ($(and $(filter grade train watch debug trace report build,$(MAKECMDGOALS)),$(if $(wildcard $(BUILD)/libbalise.a),,first)),)
ifeq ($(MAKELEVEL),0)
$(info $(shell $(TELL) line "building the kit, once: this takes half a minute" ""))
endif
endif
