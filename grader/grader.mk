# Labs as objects and as programs that run them (runners), the judge, and grading. Included by the
# Makefile.

# The judge alone has the folders of grader/labs.
JUDGE := $(wildcard grader/judge/*.c grader/judge/*/*.c grader/judge/report/formats/*.c grader/labs/*/*.c)
SCENARIOS := $(wildcard grader/labs/*.c)
RUNNER := $(filter-out grader/runner/idle.c,$(wildcard grader/runner/*.c))

nn = $(if $(filter 1 2 3 4 5 6 7 8 9,$(1)),0)$(1)

START_FILES := $(wildcard grader/start/*/*.c)
# The objects of labs' start files, in single or double precision: they stand in for labs that must
# be linked.
start_objects = $(foreach n,$(2),$(call $(1),grader/start/$(call lab_file,$(n))))

# What grader/stack.py reports about the requested stack, such as whose labs it uses. Runs once,
# when first needed.
STACKED = $(call answer,STACKED,grader/stack.py $(call quoted,$(STACK)) $(call quoted,$(UPTO)))
# The goals that may need it: not grading, and not goals that must work before Python is installed.
TRAINS := $(filter-out grade runners trace tape report measure start $(NOT_BUILT),$(or $(GOALS),all))
stack = $(patsubst $(1)=%,%,$(filter $(1)=%,$(STACKED)))
author_of = $(call stack,author-$(1))

# The contents of grader/labs.mk, for the records in grader/labs.
lab_files = .folder = "$(LAB_$(1)_FOLDER)", .file = "$(LAB_$(1)_FILE)"
define lab_declarations
#define LAB_FILES_$(call nn,$(1)) .number = $(1), .part = $(LAB_$(1)_PART), $(lab_files), .needs = "$(LAB_$(1)_NEEDS)"
ScenarioFunction scenario_$(call nn,$(1));
extern Lab lab_$(call nn,$(1));

endef
$(BUILD)/generated/labs.h: grader/labs.mk grader/grader.mk
	$(shell mkdir -p $(@D))$(file >$@,$(foreach lab,$(LABS),$(call lab_declarations,$(lab))))
	$(file >>$@,#define LABS $(foreach lab,$(LABS),&lab_$(call nn,$(lab)),))
$(call double,$(JUDGE) $(SCENARIOS)) $(call float,$(SCENARIOS) $(RUNNER)): | $(BUILD)/generated/labs.h

# The settings with which the judge starts ranks, for supervisor.c. SHARED stands for a folder.
$(BUILD)/generated/open_mpi.h: common/comm/open_mpi.sh grader/grader.mk
	mkdir -p $(@D)
	echo '#define OPEN_MPI_SETTINGS' $$(common/comm/open_mpi.sh root here cores=1 quiet yield shared=SHARED graded | \
	    sed 's/^\([^=]*\)=\(.*\)/{"\1", "\2"},/') > $@
$(call double,grader/judge/launch/supervisor.c): | $(BUILD)/generated/open_mpi.h

# ---- a lab's object -------------------------------------------------------------------------------------------------

# Compiles a lab with few warnings; only its exports are visible, and its code has its own section.
# Finding a lab's line from an address needs -no-pie and frame pointers. gcc must not move parts of
# a function into another section, nor merge functions with the same body; clang must use the
# external assembler. The compiler quotes no lines; grader/compile-lab.sh does, and needs columns in
# bytes. A compiler that reports each of thousands of errors takes a minute, so it stops after ten; what
# gcc 14 calls an error (implicit-int) is one for all.
IS_CLANG = $(call answer,IS_CLANG,$(CC) --version 2>/dev/null | grep -i clang)
OF_COMPILER = $(if $(IS_CLANG),-fno-integrated-as -fno-caret-diagnostics -ferror-limit=10,\
    -fno-reorder-blocks-and-partition -fno-ipa-icf -fno-diagnostics-show-caret -fdiagnostics-column-unit=byte \
    -fmax-errors=10)
LAB_CFLAGS = -std=gnu17 -g $(if $(FOR_GDB),-O0,-O2) -Wall -Wno-unused-parameter \
    $(addprefix -Werror=,return-type incompatible-pointer-types int-conversion implicit-function-declaration \
                               implicit-int) \
    -fno-omit-frame-pointer -fno-optimize-sibling-calls $(OF_COMPILER) -fno-pie $(SANITIZE) -Icommon $(MPI_CFLAGS)
LAB_OBJECTS = $(BUILD)/labs$(FOR_GDB)
lab_objects = $(LABS:%=$(LAB_OBJECTS)/$(1)/%.$(2))
# Has no sanitizers: they need more address space than grader/limits.sh allows.
$(BUILD)/enclose: grader/enclose.c
	mkdir -p $(@D)
	$(CC) -std=gnu17 -O2 $(WARNINGS) -D_GNU_SOURCE $< -o $@ $(or_full)
COMPILES_LABS = $(BUILD)/enclose grader/compile-lab.sh grader/lab-object.sh grader/limits.sh grader/lab-calls.txt \
    grader/labs.mk common/balise.h common/balise_mpi.h
compile_lab = CC='$(CC)' CFLAGS='$(LAB_CFLAGS)' ENCLOSE='$(BUILD)/enclose' grader/compile-lab.sh \
    $* $(1) $@ '$(LAB_$*_EXPORTS)'

# Checksums of the files of a student's lab, which decide whether to compile it again. Times are not
# enough, because a restored file may be older than its object. The lab may include any file of its
# folder. Of a large file, or of what a link points to, the size and the time are enough: many of them
# would take minutes to read, and some never end. Errors are in the reader's language, so it is
# recorded too.
OF_A_LAB = -maxdepth 1 -type f ! -name '.*'
$(call lab_objects,student,sources): $(LAB_OBJECTS)/student/%.sources: always
	mkdir -p $(@D)
	(cd labs/$(LAB_$*_FOLDER) 2> /dev/null && LC_ALL=C find -L . $(OF_A_LAB) \
	    \( \( -size +256k -o -xtype l \) -printf '%s %T@ %p\n' -o -exec sha256sum {} + \) 2> /dev/null) \
	    | sort > $@.new
	echo "$${LC_ALL:-$${LC_MESSAGES:-$$LANG}} $$LANGUAGE" >> $@.new
	if cmp -s $@.new $@; then rm -f $@.new; else mv $@.new $@; fi
# Errors are written to NN.o.failed, for the judge to report; for a solution, an error ends make.
$(call lab_objects,student,o): $(LAB_OBJECTS)/student/%.o: $(LAB_OBJECTS)/student/%.sources $(COMPILES_LABS)
	$(call compile_lab,labs/$(call lab_file,$*)) || [ -s $@.failed ] $(or_full)
$(call lab_objects,solution,o): $(LAB_OBJECTS)/solution/%.o: solutions/$$(call lab_file,$$*) $(COMPILES_LABS)
	mkdir -p $(@D)
	$(call compile_lab,$<) || { cat $@.failed 2> /dev/null; false; } $(or_full)
# In a handout: an object that came with the kit, or none, which the judge reports.
GIVEN = grader/given/$(shell uname -m)
$(call lab_objects,given,o): $(LAB_OBJECTS)/given/%.o: $(GIVEN)/%.o
	mkdir -p $(@D)
	cp $< $@
$(call lab_objects,missing,o): $(LAB_OBJECTS)/missing/%.o:
	mkdir -p $(@D)
	: > $@

# ---- a lab's runner -------------------------------------------------------------------------------------------------

# The sources that judge and runners must share: records, calls, inputs and their order.
PROTOCOL := $(wildcard $(addprefix grader/,protocol.h calls.h label.h labs/*.[ch]) \
                       common/balise.h common/base/philox.[ch])
$(BUILD)/generated/protocol_checksum.h: $(PROTOCOL)
	mkdir -p $(@D)
	printf '#define PROTOCOL_CHECKSUM "%.16s"\n' "$$(cat $^ | sha256sum)" > $@
$(call float,grader/labs/stamp.c) $(call double,grader/labs/stamp.c): $(BUILD)/generated/protocol_checksum.h

# The kernels that the grader counts, in the runner and in the judge.
COUNTED_KERNELS = $(addprefix kernel_linear_,forward backward_input backward_weight) \
                  $(addprefix kernel_attention_,forward backward) kernel_dropout_draw
wrapped = $(addprefix -Wl$(comma)--wrap=,$(1))
# gold, from the same package, takes half of ld's time. A student waits for the linker after each
# edit.
FASTER_LINKER := $(if $(call in_path,ld.gold),-fuse-ld=gold)
# In gdb, a student can call tensor_print, even if the lab does not.
# relro and now: a lab cannot redirect functions of the runner. noexecstack: no executable stack,
# which some objects request. The record is below the program: there, a lab's system calls cannot
# replace it (grader/runner/filter.h).
RUNNER_LDFLAGS = $(LDFLAGS) $(FASTER_LINKER) -Wl,-z,relro,-z,now,-z,noexecstack \
                 -Wl,--defsym=the_record=0x10000000,-Ttext-segment=0x40000000 \
                 $(call wrapped,$(COUNTED_KERNELS) tensor_data) \
                 $(if $(FOR_GDB),-Wl$(comma)--undefined=tensor_print)
# A runner reads no texts, so the linker need not read the tokenizers' libraries.
RUNNER_LDLIBS = $(MPI_LIBS) $(BLAS_LIBS) -lxxhash -lm $(LIBS_$(BACKEND))
# From this archive, a runner takes only its lab's scenario.
$(BUILD)/scenarios.a: $(call float,$(SCENARIOS))
RUNNER_PARTS = $(call float,$(RUNNER)) $(BUILD)/scenarios.a

# NN-student and NN-solution build on the reference, NN-mine on the requested stack.
RUNNERS = $(BUILD)/runners$(OF_BACKEND)$(FOR_GDB)
runner = $(RUNNERS)/$(call nn,$(2))-$(1)
AUTHORS = student solution $(filter mine,$(STACK))
ALL_RUNNERS := $(foreach author,$(AUTHORS),$(foreach lab,$(LABS),$(call runner,$(author),$(lab))))
lab_of = $(patsubst 0%,%,$(firstword $(subst -, ,$(notdir $(1)))))
beneath_author = $(if $(or $(HANDOUT),$(filter %-mine,$(1))),$(call author_of,$(2)),solution)
stand_ins = $(if $(filter missing,$(call beneath_author,$(1),$(2))),\
    $(patsubst $(2):%,%,$(filter $(2):%,$(STAND_INS_$(lab_of)))))
labs_beneath = $(foreach n,$(LAB_$(lab_of)_NEEDS),$(or $(call start_objects,float,$(call stand_ins,$(1),$(n))), \
    $(LAB_OBJECTS)/$(call beneath_author,$(1),$(n))/$(n).o))
lab_itself = $(LAB_OBJECTS)/$(if $(filter %-solution,$(1)),solution,student)/$(lab_of).o
$(ALL_RUNNERS:=.list): LINKED_OF = $(call labs_beneath,$(basename $@))
$(ALL_RUNNERS): $$@.list $$(call lab_itself,$$@) $$(call labs_beneath,$$@) \
        $$(call start_objects,float,$$(LAB_$$(call lab_of,$$@)_BESIDE)) $(RUNNER_PARTS) $(LIBRARY) \
        grader/link-runner.sh grader/limits.sh
	CC='$(CC)' LDFLAGS='$(RUNNER_LDFLAGS)' LDLIBS='$(RUNNER_LDLIBS)' \
	    grader/link-runner.sh $(call lab_of,$@) $@ $(filter %.o %.a,$^) $(or_full)

# The mesh calls labs 8 and 10.
$(RUNNERS)/idle: $(call float,grader/runner/idle.c) $(call start_objects,float,8 10) $(RUNNER_PARTS) $(LIBRARY)
	mkdir -p $(@D)
	$(CC) $(RUNNER_LDFLAGS) -Wl,-u,protocol_stamp,--defsym=lab_variables=0 $(filter %.o,$^) \
	    -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -o $@ $(RUNNER_LDLIBS) $(or_full)

# ---- the judge ------------------------------------------------------------------------------------------------------

# The judge without its main program. The gradebook and the hand-in also link it, because they need
# the labs and their checks.
$(BUILD)/judge.a: $(call double,$(filter-out grader/judge/main.c,$(JUDGE)) $(SERIAL) $(SCENARIOS)) \
                  $(call start_objects,double,$(FROM_START_FILES))
JUDGE_LDFLAGS = $(LDFLAGS) $(call wrapped,$(COUNTED_KERNELS))
JUDGE_PARTS = $(BUILD)/judge.a $(BUILD)/libbalise-double.a
link_judge = $(CC) $(JUDGE_LDFLAGS) $(filter %.o,$^) -Wl,--start-group $(JUDGE_PARTS) -Wl,--end-group -o $@
$(BUILD)/grade: $(call double,grader/judge/main.c) $(JUDGE_PARTS) | $(CATALOGUES)
	$(link_judge) $(MPI_LIBS) -ljansson -lxml2 -lutf8proc -lm $(or_full)
# The labs with their titles and points, for scripts.
$(BUILD)/generated/labs.json: $(BUILD)/grade
	$(BUILD)/grade --list > $@
$(call double,$(wildcard grader/judge/report/formats/*.c)): CPPFLAGS += $(XML_CFLAGS)

# ---- grading --------------------------------------------------------------------------------------------------------

AUTHOR = $(if $(SOLUTION),solution,$(if $(filter mine,$(STACK)),mine,student))
labs_of_part = $(foreach lab,$(LABS),$(if $(filter $(1),$(LAB_$(lab)_PART)),$(lab)))
GRADED = $(if $(LAB),$(filter $(LAB),$(LABS)),$(call labs_of_part,$(or $(PART),1)))
# With STACK=mine: the student's labs on which the graded labs build. They are also graded by
# themselves, to report which of them does not pass.
OWN = $(if $(filter mine,$(AUTHOR)),$(foreach lab,$(LABS),$(if $(filter student,$(call author_of,$(lab))),$(lab))))
BELOW = $(if $(strip $(OWN)),$(filter $(OWN),$(sort $(foreach lab,$(GRADED),$(LAB_$(lab)_NEEDS)))))
.PHONY: grade runners checked-runners as-handed-out
runners: $(RUNNERS)/idle
runners: $(foreach lab,$(BELOW),$(call runner,student,$(lab))) $(foreach lab,$(GRADED),$(call runner,$(AUTHOR),$(lab)))
# SAN=1: lab, kit and runner with sanitizers, built separately. A sanitizer's report does not end a
# rank; the runner does. Of a write behind a block, the address sanitizer says more than object-size.
SANITIZERS = -fsanitize=address,undefined -fno-sanitize=object-size -fsanitize-recover=address,undefined \
             -fno-omit-frame-pointer
checked-runners:
	$(MAKE) BUILD=$(BUILD)/checked OPTIMISE=-O1 SANITIZE='$(SANITIZERS)' runners
as-handed-out:
	grader/handout/changed.sh

# All that a lab is linked with and judged by, so that the first grade after `make setup` is quick.
.PHONY: prebuild
prebuild: $(BUILD)/grade $(BUILD)/compile_commands.json $(RUNNER_PARTS) $(LIBRARY)
	$(RELEASE)

GRADED_RUNNERS = $(BUILD)$(if $(SAN),/checked)/runners$(OF_BACKEND)
BEGAN := $(if $(V),$(shell date +%s.%N))
GPU_SEEN = $(if $(and $(ON),$(GPU_PROBE)),$(BUILD)/kernels$(OF_BACKEND))
LOCAL_CASES = $(patsubst %,--cases %,$(wildcard grader/cases.local))
CHOSEN_LABS = $(call option,--lab,$(LAB)) $(call option,--part,$(PART))
# Points are missing: make exits with status 1, and prints no error below the verdict. With -k or -i it
# has to go on, and on a cluster the judge runs on another machine: there, make prints its error.
GOES_ON = $(ON)$(findstring k,$(LETTERS))$(findstring i,$(LETTERS))
LETTERS = $(filter-out --%,$(firstword -$(MAKEFLAGS)))
# The kit's tests set BALISE_EXPECTED, because they grade the cases of one seed again and again.
judge = $(BUILD)/grade $(GPU_OPTION) --author $(AUTHOR) --runners $(1) $(CHOSEN_LABS) \
        $(if $(SEED),$(call option,--expected,$(BALISE_EXPECTED)))
grade: $(if $(HANDOUT),as-handed-out) $(or $(GPU_SEEN),$(GPU_PROBE)) $(BUILD)/grade $(if $(SAN),checked-,)runners \
       $(BUILD)/compile_commands.json
	$(RELEASE)
	$(if $(KEEP_VERDICT),mkdir -p $(BUILD)/verdicts)
	$(if $(ON),JOB_PROBE='$(GPU_SEEN)' $(ON_SLURM) grade )$(call judge,$(GRADED_RUNNERS)) --own '$(strip $(OWN))' \
	    $(if $(SAN),--sanitized) $(call option,--seed,$(SEED)) $(call option,--case,$(CASE)) \
	    $(call option,--sandbox,$(SANDBOX)) $(call option,--since,$(BEGAN)) $(LOCAL_CASES) $(KEEP_VERDICT) \
	    $(call option,--format,$(FORMAT)) $(if $(OUT),--out "$$OUT") $(if $(GOES_ON),,--make "$$PPID")

# Commands about one case. trace: its MPI calls, with ranks as columns. tape: the operations of a
# pass. report: a page that shows who holds what, which elements are wrong, and the calls. measure:
# the number that students predict. An earlier page stays if the command is refused (status 2). It
# is removed if the lab no longer builds.
.PHONY: trace tape report measure
trace tape report measure: $(GPU_PROBE) $(BUILD)/grade $(BUILD)/generated/labs.json \
        $(if $(LAB),$(foreach lab,$(GRADED),$(call runner,$(AUTHOR),$(lab))))
# With CLUSTER=, trace and report also replay the case's step at the pace of a cluster, for a model
# whose work on one rank follows from a dry run.
ON_CLUSTER = cluster=$$($(call as_environment,BUILD CLUSTER MODEL LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE) \
    common/bench/clusters.py) &&
.PHONY: serial-dry-run
trace report: $(if $(CLUSTER),serial-dry-run)
serial-dry-run:
	$(MAKE) STACK=serial UPTO= $(BUILD)/stacks/serial-0/check
judge_on_cluster = $(if $(CLUSTER),$(ON_CLUSTER)) $(call judge,$(RUNNERS)) $(if $(CLUSTER),--cluster "$$cluster")
trace:
	$(RELEASE)
	$(judge_on_cluster) --trace $(SHOWN)
tape:
	$(RELEASE)
	$(call judge,$(RUNNERS)) --tape $(call option,--rank,$(RANK)) $(SHOWN)
report:
	$(RELEASE)
	mkdir -p $(BUILD)/report
	$(if $(LAB),$(MAKE_PAGE)lab.py begin $(call PAGE,lab$(LAB)))
	$(judge_on_cluster) --report $(BUILD)/report/lab.json $(SHOWN) || \
	    { status=$$?; [ $$status = 2 ] || rm -f $(call PAGE,lab$(LAB)); exit $$status; }
	$(MAKE_PAGE)lab.py $(BUILD)/report/lab.json $(call PAGE,lab$(LAB))

.PHONY: start
start:
	LAB=$(call quoted,$(LAB)) LABS='$(LABS)' grader/start-lab.sh labs/$(call lab_file,$(LAB))
