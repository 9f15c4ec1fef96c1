# Balise: `make help` shows the commands.
#
# Everything that is built goes below build/. Sources are found by their location: common/FOLDER/*.c
# is the runtime, in single precision with the cpu backend (libbalise.a) and in double precision
# with the reference backend (libbalise-double.a, for the judge); *_main.c are programs;
# common/FOLDER/tests and grader/tests hold the tests. grader/labs.mk lists the labs.

THIS := $(strip $(MAKEFILE_LIST))
include common/setup/environment.mk
BUILD ?= build
# Makes BUILD relative to this folder if it is inside, so that each built file has one name in the
# *.d files, wherever make was started.
$(if $(findstring $(CURDIR)/,$(BUILD)),$(eval override BUILD := $$(subst $$(CURDIR)/,,$$(BUILD))))
$(firstword $(CURDIR))/%: % ;
CC = gcc
BLAS ?= openblas
BACKEND ?= cpu
TRANSPORT ?= mpi
SITE ?= site.mk

# ---- flags ----------------------------------------------------------------------------------------------------------

# answer, NAME, COMMAND: defines NAME as the output of the command, which runs once, when NAME is
# first used.
answer = $(eval $(1) := $$(shell $(2)))$($(1))
MPI_CFLAGS = $(call answer,MPI_CFLAGS,pkg-config --cflags ompi-c 2>/dev/null || mpicc --showme:compile 2>/dev/null)
MPI_LIBS = $(call answer,MPI_LIBS,pkg-config --libs ompi-c 2>/dev/null || mpicc --showme:link 2>/dev/null)
XML_CFLAGS = $(call answer,XML_CFLAGS,pkg-config --cflags libxml-2.0 2>/dev/null)
BLAS_CFLAGS = $(call answer,BLAS_CFLAGS,pkg-config --cflags $(BLAS) 2>/dev/null)
BLAS_LIBS = $(call answer,BLAS_LIBS,pkg-config --libs $(BLAS) 2>/dev/null || echo -l$(BLAS))
# in_path, PROGRAM: the program's path, if it exists.
in_path = $(firstword $(wildcard $(addsuffix /$(1),$(subst :, ,$(PATH)))))

# WERROR=1 makes warnings errors, as in CI, but not with sanitizers: gcc's are then often false.
FATAL_WARNINGS = $(if $(WERROR),$(if $(SANITIZE),,-Werror))
# -Wno-pass-failed: clang with -O1 (SAN=1) does not vectorise loops, and warns about it.
WARNINGS = -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wpointer-arith -Wundef \
           -Wno-unused-parameter $(if $(IS_CLANG),-Wno-pass-failed) $(FATAL_WARNINGS)
OPTIMISE ?= -O3 -fno-math-errno -fno-trapping-math -ffp-contract=fast
CFLAGS = -std=gnu17 -g $(OPTIMISE) -fopenmp $(WARNINGS) $(SANITIZE)
CPPFLAGS = -D_GNU_SOURCE -Icommon -I. -I$(BUILD)/generated $(MPI_CFLAGS) $(BLAS_CFLAGS)
LDFLAGS = -no-pie -fopenmp $(SANITIZE) -Wl,--export-dynamic-symbol=sched_yield # common/comm/yield.c
# The tokenizers' libraries; a program without tokenizers, such as a lab's, does not load them.
TEXT_LIBS = -lutf8proc -lxxhash -ljansson \
            -Wl,--push-state,--as-needed -lpcre2-8 -lsentencepiece -lstdc++ -Wl,--pop-state
LDLIBS = $(MPI_LIBS) $(BLAS_LIBS) -lcsv $(TEXT_LIBS) -lm

.DEFAULT_GOAL := all
.DELETE_ON_ERROR .SUFFIXES .SECONDEXPANSION:
MAKEFLAGS += --no-builtin-rules --no-print-directory
ifeq ($(V),)
.SILENT:
endif

# quoted, TEXT: the text as one word of a recipe's shell, whatever it contains.
quoted = '$(subst $(LINE_BREAK),'"$$LINE_BREAK"',$(subst ','\'',$(1)))'
# as_environment, NAMES: these variables, as assignments before a command.
as_environment = $(foreach name,$(1),$(name)=$(call quoted,$($(name))))
# option, --NAME, VALUE: the option, if there is a value.
option = $(if $(2),$(1) $(call quoted,$(2)))
comma := ,

# In a recipe that compiles: on a terminal, shows the number of compiled files, because a first
# build takes half a minute.
ON_TERMINAL = $(call answer,ON_TERMINAL,[ ! -t 2 ] || echo yes)
LACKED = $(eval LACKED := $(words $(filter-out $(wildcard $(OF_GRADING)),$(OF_GRADING))))$(LACKED)
OF_GRADING = $(call float,$(RUNTIME) $(SCENARIOS) $(RUNNER)) $(call double,$(DOUBLE) $(JUDGE) $(SERIAL) $(SCENARIOS))
COMPILED =
tell_progress = $(if $(ON_TERMINAL),$(if $(LACKED),)$(eval COMPILED += \
                    x)common/setup/progress.sh $(words $(COMPILED)) $(LACKED);)

# After a command: if it failed, removes its output, even an older object, and reports a full disk.
or_full = || { rm -f $@ $(@:.o=.d); common/base/disk.sh $(call quoted,$(BUILD)); }

# ---- sources, settings, checks --------------------------------------------------------------------------------------

include grader/labs.mk
# A name of a lab stands for its number.
$(foreach number,$(if $(filter-out $(LABS),$(LAB)),$(shell grader/stack.py number $(call quoted,$(LAB)) 2> /dev/null)),\
    $(eval override LAB := $(number)))
include common/slurm/slurm.mk
include common/po/words.mk

# A student's handout has no solutions; there, labs build on the student's own earlier labs.
HANDOUT := $(if $(wildcard solutions),,yes)
STACK ?= $(if $(HANDOUT),mine)

RUNTIME_ROOMS = base data tensor backend backend/host backend/cpu comm comm/only_mpi mesh autograd model optim \
                checkpoint pretrained train story
DOUBLE_ROOMS = base tensor backend backend/host backend/reference autograd comm comm/only_mpi model
sources_in = $(filter-out %_main.c,$(wildcard $(addsuffix /*.c,$(1)) $(addsuffix /*.cc,$(1))))
RUNTIME := $(call sources_in,$(addprefix common/,$(RUNTIME_ROOMS)))
SERIAL := $(call sources_in,common/model/serial)
DOUBLE := $(filter-out $(patsubst %,common/autograd/%.c,pairs pair_scatter raw op_collectives) \
                       common/model/positions.c, \
            $(call sources_in,$(addprefix common/,$(DOUBLE_ROOMS)))) \
          $(wildcard common/train/bucket*.c common/data/permutation.c)

float = $(patsubst %,$(BUILD)/float/%.o,$(basename $(1)))
double = $(patsubst %.c,$(BUILD)/double/%.o,$(1))

include common/backend/backend.mk

GOALS = $(MAKECMDGOALS)
CHECKED = CURDIR MAKELEVEL TEXTDOMAIN TEXTDOMAINDIR GOALS SET EMPTY STRAY DOLLAR LABS HANDOUT BUILD CC MPI_LIBS NVCC \
          NCCL STACK SOLUTION UPTO LAB BACKEND TRANSPORT ON SITE PART AGAIN ASK INDEPENDENT NAMES REPORT SAN LAB_FILES
LAB_FILES = $(foreach lab,$(LABS),labs/$(call lab_file,$(lab)))
IN_THE_WAY := $(shell cd "$$(dirname $(call quoted,$(THIS)))" && \
    $(AS_USUAL) $(call as_environment,$(CHECKED)) common/setup/check.sh || echo common/setup/check.sh: $$?)
$(if $(IN_THE_WAY),$(error $(IN_THE_WAY)))

# In `make help train`, train is a topic, not a goal.
ifeq ($(firstword $(GOALS)),help)
.PHONY: $(GOALS)
help: | $(CATALOGUES)
	common/setup/help.sh $(wordlist 2,9,$(GOALS))
$(filter-out help,$(GOALS)):
	:
else

# Only one make builds in BUILD at a time. A recipe that runs what was built releases the lock.
NOT_BUILT = data demo doctor plot setup
export BUILD_HOLDER := $(strip $(if $(filter-out $(NOT_BUILT),$(or $(GOALS),all)),\
    $(shell exec $(AS_USUAL) common/setup/hold.sh $(call quoted,$(BUILD)))))
$(if $(word 2,$(BUILD_HOLDER)),$(error $(BUILD_HOLDER)))
RELEASE = $(if $(COMPILED),common/setup/progress.sh;) $(if $(BUILD_HOLDER),kill $(BUILD_HOLDER) 2> /dev/null || :)

# ---- compiling ------------------------------------------------------------------------------------------------------

# A first build compiles hundreds of files. It runs as many compilers at a time as there are cores,
# at most 8, unless the user or an outer make has set -j.
AT_A_TIME = case " $$MAKEFLAGS" in *' -j'*) ;; *) n=$$(env -u OMP_NUM_THREADS nproc); echo -j$$((n < 8 ? n : 8)) ;; esac
MAKEFLAGS += $(if $(filter-out prebuild grade,$(or $(GOALS),all)),,$(shell $(AT_A_TIME)))

.PHONY: build all always
all: build | $(CATALOGUES)
	common/setup/help.sh
build: $(BUILD)/compile_commands.json $(BUILD)/generated/labs.json $(if $(HANDOUT),,$(BUILD)/train $(BUILD)/story) \
       $(BUILD)/tokenize $(BUILD)/checkpoint

$(BUILD)/float/%.o: %.c
	$(tell_progress) mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -MMD -MP -c $< -o $@ $(or_full)

$(BUILD)/float/%.o: %.cc
	$(tell_progress) mkdir -p $(@D)
	$(CXX) $(CXX_FLAGS) -c $< -o $@ $(or_full)

$(BUILD)/double/%.o: %.c
	mkdir -p $(@D)
	$(CC) $(CFLAGS) $(CPPFLAGS) -DBALISE_DOUBLE -MMD -MP -c $< -o $@ $(or_full)

OF_BACKENDS = cuda cuda-nccl emulated emulated-nccl dry
ARCHIVES = libbalise libbalise-double scenarios judge libtest libtest-double $(OF_BACKENDS:%=libbalise-%)
$(ARCHIVES:%=$(BUILD)/%.a):
	rm -f $@
	ar rcs $@ $^ $(or_full)
$(BUILD)/libbalise.a: $(call float,$(RUNTIME))
$(BUILD)/libbalise-double.a: $(call double,$(DOUBLE))

# The list of a program's objects is a file: it can change without a newer object (make start).
$(BUILD)/%.list: always
	mkdir -p $(@D)
	printf '%s\n' '$(LINKED_OF)' | cmp -s - $@ || printf '%s\n' '$(LINKED_OF)' > $@

# ---- the labs, grading, handing in ----------------------------------------------------------------------------------

include grader/grader.mk
include grader/loop/loop.mk
include grader/gradebook/gradebook.mk
-include $(wildcard grader/tests.mk)

# The compile commands of each file, for clangd, which looks for them in build/.
EDITED = $(wildcard $(foreach lab,$(LABS),$(addsuffix /$(call lab_file,$(lab)),labs solutions))) \
         $(filter %.c,$(RUNTIME)) $(JUDGE) $(SCENARIOS) $(RUNNER)
UNKNOWN_TO_CLANG = -fno-reorder-blocks-and-partition -fno-ipa-icf -fno-diagnostics-show-caret \
                   -fdiagnostics-column-unit=byte -fmax-errors=10 -fopenmp
flags_of = $(filter-out $(UNKNOWN_TO_CLANG),$(if $(filter labs/% solutions/%,$(1)),$(LAB_CFLAGS),$(CFLAGS) $(CPPFLAGS)))
command_of = {"directory": "$(CURDIR)", "file": "$(1)", "command": "cc $(flags_of) -c $(1)"}
$(BUILD)/compile_commands.json: Makefile grader/labs.mk
	mkdir -p $(@D)
	$(file >$@,[$(subst } {,}$(comma) {,$(strip $(foreach file,$(EDITED),$(call command_of,$(file)))))])

# ---- training -------------------------------------------------------------------------------------------------------

TRAIN_PARTS = $(addprefix $(BUILD)/,$(call stack,part))
TRAIN = $(BUILD)/$(if $(STACK)$(UPTO),stacks/$(or $(STACK),solutions)-$(call stack,stage)/)train$(OF_BACKEND)

# The shared object for AMP=bf16; built if oneDNN's header exists.
ONEDNN := $(if $(wildcard $(addsuffix /dnnl.h,/usr/include $(subst :, ,$(CPATH)))),$(BUILD)/balise-onednn.so)
ONEDNN_OBJECT = $(if $(ONEDNN),$(call float,common/backend/onednn/onednn.c))
$(call float,common/backend/cpu/products.c): CPPFLAGS += -DONEDNN_FILE='"$(abspath $(BUILD))/balise-onednn.so"'
$(ONEDNN_OBJECT): CFLAGS += -fPIC
$(BUILD)/balise-onednn.so: $(ONEDNN_OBJECT)
	$(CC) $(filter-out -no-pie,$(LDFLAGS)) -shared $^ -o $@ -ldnnl $(or_full)

$(BUILD)/tokenize: $(call float,common/data/tokenize_main.c) $(BUILD)/libbalise.a
	$(CC) $(LDFLAGS) $^ -o $@ $(TEXT_LIBS) -lm $(or_full)

$(BUILD)/checkpoint: $(call float,common/pretrained/checkpoint_main.c) $(BUILD)/libbalise.a
	$(CC) $(LDFLAGS) $^ -o $@ -ljansson -lutf8proc -lxxhash -lm $(or_full)

include common/train/train.mk
include common/story/story.mk
include $(wildcard common/bench/bench.mk)

# Curves of runs, from files written with METRICS=.
.PHONY: plot
plot: | $(CATALOGUES)
	METRICS="$$METRICS" Y=$(call quoted,$(Y)) OUT="$$OUT" common/plot/plot.py

# ---- setting up, looking around -------------------------------------------------------------------------------------

.PHONY: setup doctor data demo clean
setup doctor data: | $(CATALOGUES)
setup:
	common/setup/setup.sh
	$(MAKE) prebuild && common/setup/next.sh

doctor:
	common/setup/doctor.sh

data:
	common/setup/setup.sh core data
	$(call as_environment,ONLY) data/download.sh

# A sub-make, so that pkg-config and mpicc run only after they are installed.
SMALL_MODEL = LAYERS=2 HIDDEN_DIM=128 HEADS=4 BATCH_SIZE=16 SEQ=64 LR=1e-3 EPOCHS=1
demo:
	common/setup/setup.sh demo && $(MAKE) prebuild $(if $(HANDOUT),,grade SOLUTION=1)
	$(MAKE) train $(if $(HANDOUT),STACK=serial NTASKS=1 TP=1,NTASKS=2 TP=2) $(SMALL_MODEL)
	common/setup/next.sh

# Removes everything built and the last verdicts; labs/ stays.
clean:
	rm -rf $(call quoted,$(BUILD))

# ---- the course, the reference, the tests: not handed out -----------------------------------------------------------

-include $(wildcard slides/slides.mk common/setup/docs/docs.mk common/tests/tests.mk)
-include $(shell find $(addprefix $(BUILD)/,float double cuda emulated) -name '*.d' 2>/dev/null)
endif
