# make train, make sbatch: a run's ranks, settings and page.

# NTASKS, unless given, is the product of the degrees.
DEGREES = $(foreach name,TP DP PP,$(call quoted,$(or $($(name)),1)))
NTASKS ?= $(or $(filter-out 0 -%,$(call answer,PRODUCT,expr $(subst ' ',' \* ',$(DEGREES)) 2>/dev/null)),1)

# REPORT=1 makes a page from the run's trace and metrics. TRACE= and METRICS= keep these as files.
METRICS_FILE = $(or $(METRICS),$(if $(REPORT),$(BUILD)/report/metrics.jsonl))
TRACE_FILE = $(or $(TRACE),$(if $(REPORT),$(BUILD)/report/trace.json))
PAGE = "$${OUT:-$(BUILD)/report/$(1).html}"
MAKE_PAGE = common/page/

# The training program, whose parts grader/stack.py determines, and its dry run.
DRY_RUN = $(dir $(TRAIN))check
ifneq ($(TRAINS),)
$(TRAIN).list: LINKED_OF = $(TRAIN_PARTS)
$(TRAIN): $(BUILD)/float/common/train/train_main.o $(LIBRARY) | $(ONEDNN)
$(DRY_RUN): override LIBS_$(BACKEND) =
$(DRY_RUN): $(BUILD)/float/common/train/check_main.o $(BUILD)/libbalise-dry.a
$(TRAIN) $(DRY_RUN): $(TRAIN).list $(TRAIN_PARTS) grader/link-train.sh grader/limits.sh | $(CATALOGUES)
	$(call as_environment,CC LDFLAGS LDLIBS) grader/link-train.sh $@ $(filter %.o %.a,$^) $(or_full)
endif

# options_of, COMMAND: the command's settings that have a value, as options of its program.
options_of = $(foreach pair,$(shell common/setup/settings.sh options $(1)),$(call setting,$(subst =, ,$(pair))))
setting = $(call option,--$(word 1,$(1)),$(or $($(word 2,$(1))_FILE),$($(word 2,$(1)))))
# If DATA is given without TEST, there is no test set.
TRAIN_OPTIONS = $(call options_of,train) \
    $(if $(DATA)$(TEST),--test $(call quoted,$(TEST))) --cache $(BUILD)/cache

# make sbatch: the same as a Slurm job; with JOB=n, waits for a job submitted earlier.
.PHONY: train sbatch
ifneq ($(call said,JOB),)
sbatch:
	$(ON_SLURM) wait $(call quoted,$(JOB))
endif
train $(if $(call said,JOB),,sbatch): $(TRAIN) $(if $(SAVE),$(BUILD)/checkpoint)
	$(RELEASE)
	$(if $(filter mine,$(STACK)),grader/stack.py tell mine $(UPTO))
	$(if $(REPORT),mkdir -p $(BUILD)/report && rm -f $(BUILD)/report/metrics.jsonl $(BUILD)/report/trace.json)
	$(if $(REPORT),$(MAKE_PAGE)training.py begin \
	    $(call quoted,$(TRACE_FILE)) $(call quoted,$(METRICS_FILE)) $(call PAGE,train))
	$(if $(filter sbatch,$@),$(ON_SLURM) train,common/train/launch.sh) $(call quoted,$(NTASKS)) \
	    $(or $(STACK),solutions) $(call stack,stage) $(TRAIN) $(TRAIN_OPTIONS)
	$(if $(REPORT),$(MAKE_PAGE)training.py \
	    $(call quoted,$(TRACE_FILE)) $(call quoted,$(METRICS_FILE)) $(call PAGE,train))

# make check: what the ranks of such a run would hold and send, without starting it.
.PHONY: check
check: $(DRY_RUN)
	$(RELEASE)
	$(if $(filter mine,$(STACK)),grader/stack.py tell mine $(UPTO))
	common/train/dry_run.sh $(call quoted,$(NTASKS)) $(or $(STACK),solutions) $(call stack,stage) $(DRY_RUN) \
	    $(GPU_OPTION) $(call options_of,check)

# make run: a C file of the user's, compiled like a lab and linked with the labs. make expands the
# prerequisites whenever it reads this, and Python may be missing before make setup.
RUN_CFLAGS = $(filter-out -fno-diagnostics-show-caret -fno-caret-diagnostics,$(LAB_CFLAGS))
BUILT_PROGRAM = "$(dir $(TRAIN))own$(OF_BACKEND)/$$(basename "$$PROGRAM" .c)"
.PHONY: run
run: $(if $(TRAINS),$(TRAIN_PARTS)) $(LIBRARY) | $(CATALOGUES)
	PROGRAM=$(call quoted,$(PROGRAM)) CFLAGS='$(RUN_CFLAGS)' $(call as_environment,CC LDFLAGS LDLIBS) \
	    common/train/build-own.sh $(BUILT_PROGRAM) $^
	$(RELEASE)
	$(if $(filter mine,$(STACK)),grader/stack.py tell mine $(UPTO))
	common/train/launch.sh $(call quoted,$(NTASKS)) $(or $(STACK),solutions) $(call stack,stage) $(BUILT_PROGRAM) \
	    $(call options_of,run)
