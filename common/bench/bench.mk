# Measurements of this machine; never a test. Included by the Makefile.

# Trains one model in every layout and prints a table.
.PHONY: layouts
layouts: $(BUILD)/train $(BUILD)/checkpoint | $(CATALOGUES)
	$(RELEASE)
	$(call as_environment,MODEL TASK DATA VOCAB) common/train/layouts.sh $(BUILD)

BENCH_kernels = $(wildcard common/backend/bench/*.c)
BENCH_collectives = common/comm/bench_main.c
$(BUILD)/bench-kernels$(OF_BACKEND) $(BUILD)/bench-collectives$(OF_BACKEND): $(BUILD)/bench-%$(OF_BACKEND): \
        $$(call float,$$(BENCH_$$*) common/tests/stop_at_misuse.c) $(LIBRARY)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)

# On GPUs, the rows for NCCL are left out if it cannot be linked.
.PHONY: bench bench-programs bench-over-nccl
BENCH_PROGRAMS = $(patsubst %,$(BUILD)/%$(OF_BACKEND),bench-kernels bench-collectives train)
# An empty text means both transports.
BENCH_TRANSPORT = $(if $(filter file,$(origin TRANSPORT)),,$(TRANSPORT))
ifeq ($(ON_GPU),)
bench-programs: $(BENCH_PROGRAMS) $(DRY_RUN) $(BUILD)/grade $(BUILD)/tokenize $(BUILD)/checkpoint $(BUILD)/story
else
bench-programs: $(GPU_PROBE)
	$(MAKE) TRANSPORT=mpi $(patsubst %,$(BUILD)/%-$(BACKEND),kernels bench-kernels bench-collectives train)
	$(MAKE) TRANSPORT=mpi STACK=serial $(BUILD)/stacks/serial-0/train-$(BACKEND)
	$(if $(filter mpi,$(BENCH_TRANSPORT)),,$(MAKE) TRANSPORT=nccl bench-over-nccl $(if $(OVER_NCCL),,|| true))
bench-over-nccl: $(BENCH_PROGRAMS)
endif
bench: bench-programs
	$(RELEASE)
	$(call as_environment,BACKEND ONLY AMP VS TORCH SAVE COMPARE MODELS STEPS PEAK) \
	    $(call as_environment,DATA VOCAB SEQ BATCH_SIZE) \
	    TRANSPORT='$(BENCH_TRANSPORT)' common/bench/bench.py $(BUILD)

# Predicts the fastest layout of NTASKS ranks, on this machine or on CLUSTER.
.PHONY: model
model: $(if $(ON_GPU),bench-programs,$(BUILD)/bench-collectives $(BUILD)/train) $(DRY_RUN)
	$(RELEASE)
	$(call as_environment,BACKEND TP PP MICRO SCHEDULE MODEL TASK LAYERS HIDDEN_DIM HEADS SEQ BATCH_SIZE) \
	    $(call as_environment,RECOMPUTE ZERO SP AVERAGE AMP CLUSTER WEAK) \
	    NTASKS=$(if $(filter file,$(origin NTASKS)),,$(call quoted,$(NTASKS))) common/bench/model.py $(BUILD)
