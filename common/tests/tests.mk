# The tests. common/<folder>/tests/test_*.c and grader/tests/test_*.c are Check programs
# (check_main.c has their main function), in single precision with the cpu backend; *_double.c in
# double precision with the reference backend; *_ranksN.c on N ranks. Functions that are not in
# libbalise.a come from an archive of the serial layers and the labs' start files. Scripts in these
# folders are tests too. run.sh runs them all. Included by the Makefile.

CHECK_CFLAGS = $(call answer,CHECK_CFLAGS,pkg-config --cflags check 2>/dev/null)
CHECK_LIBS = $(call answer,CHECK_LIBS,pkg-config --libs check 2>/dev/null || echo -lcheck)

TEST_FILES := $(wildcard common/*/tests/test_*.c grader/tests/test_*.c)
TESTS_DOUBLE := $(patsubst %.c,$(BUILD)/tests/%,$(filter %_double.c,$(TEST_FILES)))
TESTS_FLOAT := $(patsubst %.c,$(BUILD)/tests/%,$(filter-out %_double.c,$(TEST_FILES)))
DUMP_MODEL = $(BUILD)/tests/dump-model-float $(BUILD)/tests/dump-model-double

TEST_MAIN = common/tests/check_main.c common/tests/run_for_tests.c

# The two archives need each other: the model calls the layers of labs, and these call the functions
# of balise.h.
link_test = $(CC) $(LDFLAGS) -Wl,--wrap=_mark_point $(filter %.o,$^) \
    -Wl,--start-group $(filter %.a,$^) -Wl,--end-group -o $@
$(TESTS_FLOAT) $(TESTS_DOUBLE): CPPFLAGS += $(CHECK_CFLAGS)

$(TESTS_FLOAT): $(BUILD)/tests/%: $(BUILD)/float/%.o $(call float,$(TEST_MAIN)) $(BUILD)/libtest.a \
                $(BUILD)/libbalise.a | $(ONEDNN)
	mkdir -p $(@D)
	$(link_test) $(CHECK_LIBS) $(LDLIBS)

$(TESTS_DOUBLE): $(BUILD)/tests/%: $(BUILD)/double/%.o $(call double,$(TEST_MAIN)) $(BUILD)/libtest-double.a \
                 $(BUILD)/libbalise-double.a
	mkdir -p $(@D)
	$(link_test) $(CHECK_LIBS) -lutf8proc -lm

# Programs that also run on the emulated GPU: those that call kernels, except those that need the
# cpu backend's library or its skipping of zero rows, and those that take long.
CALLS_KERNELS = $(filter $(addsuffix /%,$(addprefix common/,backend autograd model train comm)),$(TEST_FILES)) \
                common/tensor/tests/test_pool.c
NOT_ON_GPU = $(foreach name,products_large backend_check tables stall table_rows_ranks2 waiting_ranks2,%/test_$(name).c)
RUN_ON_GPU := $(filter-out %_double.c $(NOT_ON_GPU) $(wildcard common/*/tests/test_slow_*.c),$(CALLS_KERNELS))
tests_on = $(patsubst %.c,$(BUILD)/tests/$(1)/%,$(2))
TESTS_EMULATED := $(call tests_on,emulated,$(RUN_ON_GPU))
TESTS_CUDA := $(call tests_on,cuda,$(RUN_ON_GPU))

# The programs that exchange numbers also run over NCCL.
RUN_OVER_NCCL := common/comm/tests/test_comm_ranks4.c common/autograd/tests/test_collectives_ranks4.c \
                 common/autograd/tests/test_sequence_ranks4.c
TESTS_NCCL := $(call tests_on,emulated-nccl,$(RUN_OVER_NCCL))
define test_on_rule
$(call tests_on,$(1),$(2)): $(BUILD)/tests/$(1)/%: $(BUILD)/float/%.o $(call float,$(TEST_MAIN)) $(BUILD)/libtest.a \
                            $(BUILD)/libbalise-$(1).a
	mkdir -p $$(@D)
	$$(link_test) $$(CHECK_LIBS) $$(LDLIBS) $(LIBS_$(firstword $(subst -, ,$(1))))
endef
$(foreach on,emulated cuda,$(eval $(call test_on_rule,$(on),$(RUN_ON_GPU))))
$(foreach on,emulated-nccl cuda-nccl,$(eval $(call test_on_rule,$(on),$(RUN_OVER_NCCL))))

# Nothing stands in for labs 17 to 19 (common/base/optional_labs.h), so tests of what calls them link
# the solutions.
solution_of = solutions/$(call lab_file,$(1))
$(BUILD)/tests/common/optim/tests/test_sharded_ranks3: $(call float,$(call solution_of,17))
$(foreach on,/ /emulated/ /cuda/ /emulated-nccl/ /cuda-nccl/,\
    $(BUILD)/tests$(on)common/autograd/tests/test_sequence_ranks4): \
    $(call float,$(call solution_of,18))
$(BUILD)/tests/common/autograd/tests/test_recompute_double: $(call double,$(call solution_of,19))

LAYERS_FLOAT = $(call float,$(filter-out %/serial_collectives.c %/serial_positions.c %/serial_sequence.c,$(SERIAL)) \
                             $(call solution_of,1)) \
               $(call start_objects,float,$(FROM_START_FILES))
LAYERS_DOUBLE = $(call double,$(SERIAL)) $(call start_objects,double,$(FROM_START_FILES))
# The judge's files about calls and streams, which need no other file of the judge.
CALLS = grader/labs/labels.c $(wildcard grader/judge/mpi/*.c grader/judge/reason/*.c) \
        $(patsubst %,grader/judge/%.c,compare/spread compare/stream launch/sandbox launch/sandbox_files \
        report/call_table report/silent_passes report/paint)
REFERENCES = $(filter-out common/backend/reference/backend.c,$(wildcard common/backend/reference/*.c))
TWINS = $(patsubst %.c,$(BUILD)/twin/%.o,$(REFERENCES))

$(BUILD)/libtest.a: $(LAYERS_FLOAT) $(call float,grader/runner/signature.c) $(TWINS)
$(BUILD)/libtest-double.a: $(LAYERS_DOUBLE) $(call double,$(CALLS))

# The reference backend beside the cpu backend: its kernel_x is renamed to reference_x (see
# common/backend/tests/twin.h).
$(BUILD)/twin/%.o: $(BUILD)/double/%.o
	mkdir -p $(@D)
	nm --defined-only $(call double,$(REFERENCES)) | sed -n 's/.* T kernel_\(.*\)/kernel_\1 reference_\1/p' > $@.names
	objcopy --redefine-syms=$@.names $< $@
$(TWINS): $(call double,$(REFERENCES))

# The programs that common/model/tests/torch_model.py compares with PyTorch.
DUMP = common/model/tests/dump_model_main.c common/tests/stop_at_misuse.c
$(BUILD)/tests/dump-model-float: $(call float,$(DUMP)) $(BUILD)/libtest.a $(BUILD)/libbalise.a
$(BUILD)/tests/dump-model-double: $(call double,$(DUMP)) $(BUILD)/libtest-double.a $(BUILD)/libbalise-double.a
$(DUMP_MODEL):
	mkdir -p $(@D)
	$(link_test) $(LDLIBS)

# The program that common/pretrained/tests/slow_transformers.py compares with Hugging Face's
# library.
COMPARED = common/pretrained/tests/hugging_face_main.c common/tests/stop_at_misuse.c
$(BUILD)/tests/hugging-face: $(call float,$(COMPARED)) $(BUILD)/libtest.a $(BUILD)/libbalise.a
	mkdir -p $(@D)
	$(link_test) $(LDLIBS)

# ---- running them ---------------------------------------------------------------------------------------------------

# The flags of make grade SAN=1, so its test finds the kit already built.
SANITIZED = BUILD=$(BUILD)/sanitized OPTIMISE=-O1 SANITIZE='$(SANITIZERS)'
# The reference's products take most of the time of kernels' tests with sanitizers.
$(if $(SANITIZE),$(BUILD)/double/common/backend/reference/product.o): override OPTIMISE = -O2
# Two jobs at a time, unless -j says otherwise.
MAKE2 = $(MAKE) $(if $(findstring -j,$(MAKEFLAGS)),,-j2)
RUN_TESTS = BUILD='$(abspath $(BUILD))' ROOT='$(CURDIR)' ON_GPU='$(RUN_ON_GPU)' common/tests/run.sh

# make test [TESTS=part of a path] [BACKEND=cuda|emulated [SANITIZER=tool|all|off]]. Runs a second
# make, which finds packages that setup has just installed. Without BACKEND, only make test-slow
# runs sanitizers on the emulated GPU.
.PHONY: test test-slow test-programs test-programs-emulated run-tests-fast run-tests-slow run-tests-on-gpu lint
test test-slow: test%:
	common/setup/setup.sh core data test $(if $*,docs slurm)
	$(MAKE) run-tests$(if $(ON_GPU),-on-gpu,$(if $*,-slow,-fast))

# The tests of make test-slow that need a real Slurm.
.PHONY: test-slurm
test-slurm:
	common/setup/setup.sh core test slurm
	$(MAKE2) build
	$(RELEASE)
	$(RUN_TESTS) slow common/train/tests/slow_slurm

# The test of the emulation itself.
EMULATION_TEST = $(BUILD)/tests/emulated/emulation
$(EMULATION_TEST): $(BUILD)/emulated/$(EMULATION)/emulation_main.o $(call float,common/tests/stop_at_misuse.c) \
                   $(BUILD)/libbalise-emulated.a
	mkdir -p $(@D)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS) $(LIBS_emulated)

test-programs-emulated: $(TESTS_EMULATED) $(TESTS_NCCL)
test-programs: $(TESTS_FLOAT) $(TESTS_DOUBLE)

# First builds the files that several tests need: tests run side by side, and each would call make.
run-tests-fast run-tests-slow: run-tests-%:
	$(MAKE2) build test-programs test-programs-emulated $(EMULATION_TEST) $(DUMP_MODEL) $(BUILD)/tests/hugging-face \
	    $(BUILD)/generated/grading.sh $(DRY_RUN)
	$(MAKE2) BACKEND=emulated $(BUILD)/train-emulated
	$(MAKE2) BACKEND=emulated TRANSPORT=nccl $(BUILD)/train-emulated-nccl
	$(MAKE2) $(SANITIZED) test-programs$(if $(filter slow,$*),-emulated) \
	    $(BUILD)/sanitized/tokenize $(BUILD)/sanitized/train
	$(if $(filter slow,$*),$(MAKE2) SOLUTION=1 bench-programs runners)
	$(if $(filter slow,$*),$(MAKE2) BACKEND=emulated SOLUTION=1 bench-programs runners)
	$(RELEASE)
	OVER_NCCL='$(RUN_OVER_NCCL)' $(RUN_TESTS) $* '$(TESTS)'

# The tests that a GPU can run: kernels, memory, exchanges over MPI and NCCL, grading, mutants,
# training. First checks that there is a GPU.
PROGRAMS_ON_GPU = $(TESTS_$(if $(filter cuda,$(BACKEND)),CUDA,EMULATED))
run-tests-on-gpu:
	$(MAKE2) $(BUILD)/kernels-$(BACKEND)
	$(BUILD)/kernels-$(BACKEND)
	$(MAKE2) $(PROGRAMS_ON_GPU) $(BUILD)/train-$(BACKEND) $(GRADING) $(DUMP_MODEL)
	$(MAKE2) BACKEND=cpu $(BUILD)/train
	rm -f $(BUILD)/train-$(BACKEND)-nccl
	$(if $(HAS_NCCL),$(MAKE2) TRANSPORT=nccl $(BUILD)/train-$(BACKEND)-nccl \
	    $(call tests_on,$(BACKEND)-nccl,$(RUN_OVER_NCCL)))
	$(if $(filter emulated,$(BACKEND)),$(if $(filter off,$(SANITIZER)),,\
	    $(MAKE2) BACKEND=cpu $(SANITIZED) test-programs-emulated))
	$(RELEASE)
	BACKEND=$(BACKEND) SANITIZER='$(SANITIZER)' OVER_NCCL='$(if $(HAS_NCCL),$(RUN_OVER_NCCL))' $(RUN_TESTS) gpu '$(TESTS)'

# All compiled sources, for the test that clang gives no warning.
MAINS = $(wildcard common/*/*_main.c common/*/tests/*_main.c common/backend/bench/*.c)
.PHONY: objects
objects: $(ONEDNN_OBJECT) $(call float,$(RUNTIME) $(SERIAL) $(RUNNER) $(MAINS) $(SCENARIOS)) \
         $(call double,$(DOUBLE) $(SERIAL) $(JUDGE) $(SCENARIOS)) \
         $(LAYERS_FLOAT) $(LAYERS_DOUBLE) $(call float,$(foreach lab,$(LABS),solutions/$(call lab_file,$(lab)))) \
         $(TESTS_FLOAT:$(BUILD)/tests/%=$(BUILD)/float/%.o) $(TESTS_DOUBLE:$(BUILD)/tests/%=$(BUILD)/double/%.o)

# Runs only the checks of the sources.
lint:
	$(RUN_TESTS) fast common/tests/sources_
