# Selects the kernels. BACKEND=cpu (the default); BACKEND=cuda: the kernels in
# common/backend/cuda, compiled by nvcc; BACKEND=emulated: the same kernels on the host, for tests
# (common/backend/tests/emulated_gpu). TRANSPORT=mpi (the default) or, on GPUs, nccl. Everything
# else is compiled once: the linker selects the kernels (libbalise-*.a). Included by the Makefile.

HASH := \#
ON_GPU = $(filter-out cpu,$(BACKEND))
CUDA := $(or $(CUDA),$(patsubst %/bin/nvcc,%,$(or $(call in_path,nvcc),$(wildcard /usr/local/cuda/bin/nvcc))))
NVCC = $(if $(CUDA),$(CUDA)/bin/nvcc)
INCLUDES_NCCL = echo '$(HASH)include <nccl.h>' | $(NVCC) -E -x cu - > /dev/null 2>&1 && echo yes
HAS_NCCL = $(or $(filter emulated,$(BACKEND)),$(if $(NVCC),$(shell $(INCLUDES_NCCL))))
OVER_NCCL = $(filter nccl,$(TRANSPORT))
NCCL = $(if $(OVER_NCCL),$(HAS_NCCL))
OF_BACKEND = $(if $(ON_GPU),-$(BACKEND)$(if $(OVER_NCCL),-nccl))
LIBRARY = $(BUILD)/libbalise$(OF_BACKEND).a

# all-major: code for each generation of GPUs that the toolkit knows; the driver compiles for later
# ones. native: code for this machine's GPU only; it compiles in a quarter of the time. Other values
# of nvcc's -arch work, too.
GPU_ARCH ?= $(if $(wildcard /dev/nvidia0),native,all-major)
NVCC_FLAGS = -std=c++17 -g -O3 -arch=$(GPU_ARCH) $(if $(WERROR),-Werror all-warnings) \
             -Xcompiler -Wall,-Wextra,-Wno-unused-parameter
GPU_SOURCES := $(wildcard common/backend/cuda/*.cu)
NCCL_SOURCES := $(wildcard common/comm/nccl/*.cu)
EMULATION = common/backend/tests/emulated_gpu
EMULATION_SOURCES := $(filter-out %_nccl.cc,$(wildcard $(EMULATION)/*.cc))
ON_HOST = $(call float,$(filter-out common/backend/cpu/% common/backend/host/%,$(RUNTIME)))
WITHOUT_NCCL = $(filter-out %/only_mpi/join.o,$(ON_HOST))
DRY_OBJECTS = $(call float,$(wildcard common/backend/dry/*.c common/comm/dry/*.c) common/backend/host/device.c)
by_nvcc = $(patsubst %.cu,$(BUILD)/cuda/%.o,$(1))
emulated = $(patsubst %,$(BUILD)/emulated/%.o,$(basename $(1)))
CXX_WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-unknown-pragmas $(FATAL_WARNINGS)
OF_CXX = -D_GNU_SOURCE -DOMPI_SKIP_MPICXX $(MPI_CFLAGS) -Icommon -MMD -MP
CXX_FLAGS = -std=gnu++17 -g $(OPTIMISE) $(CXX_WARNINGS) $(SANITIZE) $(OF_CXX) $(BLAS_CFLAGS) -I$(EMULATION)

# Objects compiled for another GPU_ARCH are rebuilt.
FOR_GPUS = $(BUILD)/cuda/for-$(GPU_ARCH)
$(FOR_GPUS):
	mkdir -p $(@D)
	rm -f $(@D)/for-*
	touch $@
$(BUILD)/cuda/%.o: %.cu $(FOR_GPUS)
	mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) $(OF_CXX) -c $< -o $@ $(or_full)
$(BUILD)/emulated/%.o: %.cu
	mkdir -p $(@D)
	$(CXX) -x c++ $(CXX_FLAGS) -c $< -o $@
$(BUILD)/emulated/%.o: %.cc
	mkdir -p $(@D)
	$(CXX) $(CXX_FLAGS) -c $< -o $@

# For make check: kernels that only count, and exchanges that send nothing.
$(BUILD)/libbalise-dry.a: $(WITHOUT_NCCL) $(DRY_OBJECTS)
$(call float,common/backend/dry/kernels.c): $(BUILD)/generated/dry_kernels.h
$(BUILD)/generated/dry_kernels.h: common/backend/dry/kernels.awk common/backend/backend.h common/backend/attention.h
	mkdir -p $(@D)
	awk -f common/backend/dry/kernels.awk common/backend/backend.h common/backend/attention.h > $@

$(BUILD)/libbalise-cuda.a: $(ON_HOST) $(call by_nvcc,$(GPU_SOURCES))
$(BUILD)/libbalise-cuda-nccl.a: $(WITHOUT_NCCL) $(call by_nvcc,$(GPU_SOURCES) $(NCCL_SOURCES))
$(BUILD)/libbalise-emulated.a: $(ON_HOST) $(call emulated,$(GPU_SOURCES) $(EMULATION_SOURCES))
$(BUILD)/libbalise-emulated-nccl.a: $(WITHOUT_NCCL) \
    $(call emulated,$(GPU_SOURCES) $(EMULATION_SOURCES) $(NCCL_SOURCES) $(EMULATION)/emulated_nccl.cc)
# Lazy binding: if the NCCL at run time lacks a function, common/comm/nccl reports that, and does
# not call the function.
LIBS_cuda = -L$(CUDA)/lib64 -Wl,-rpath,$(CUDA)/lib64 $(if $(OVER_NCCL),-lnccl -Wl$(comma)-z$(comma)lazy) \
    -lcublas -lcudart_static -lstdc++ -ldl -lrt -lpthread
LIBS_emulated = -lstdc++
LDLIBS += $(LIBS_$(BACKEND))

# On a GPU, real or emulated, a lab may take more time and memory.
GPU_OPTION = $(if $(filter cuda emulated,$(BACKEND)),--gpu)
# Checks for a GPU before anything is graded, so a missing one is reported once, and not once
# per rank and lab.
GPU_PROBE = $(if $(filter cuda,$(BACKEND)),there-is-a-gpu)
$(BUILD)/kernels$(OF_BACKEND): $(call float,common/backend/describe_main.c common/tests/stop_at_misuse.c) $(LIBRARY)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
.PHONY: there-is-a-gpu
there-is-a-gpu: $(BUILD)/kernels$(OF_BACKEND)
	$< > /dev/null

# Tests and measures the kit on a GPU, in less than 8 minutes.
REPORT_ON = $(or $(ON_GPU),cuda)
TESTS_REPORTED = $(foreach test,$(TESTS_$(if $(filter cuda,$(REPORT_ON)),CUDA,EMULATED)),\
    $(if $(if $(TESTS),$(findstring $(TESTS),$(test)),all),$(test)))
.PHONY: gpu-report
gpu-report:
	$(MAKE) BACKEND=$(REPORT_ON) $(BUILD)/libtest.a bench-programs
	$(MAKE) BACKEND=$(REPORT_ON) SOLUTION=1 $(BUILD)/grade $(TESTS_REPORTED) runners
	$(call as_environment,MODELS STEPS PEAK TORCH) TESTS='$(TESTS_REPORTED)' \
	    common/backend/cuda/report.sh $(BUILD) $(REPORT_ON)
