# BACKEND=cpu (also when nothing is said), BACKEND=cuda: the kernels of common/backend/cuda, by nvcc; BACKEND=emulated: the same kernels on
# the host, for tests (common/backend/tests/emulated_gpu). All else is compiled once: the linker chooses (libbalise-*.a).

BACKEND ?= cpu
BACKENDS = cpu cuda emulated
ifneq ($(filter-out $(BACKENDS),$(BACKEND))$(filter-out 1,$(words $(BACKEND))),)
$(error there is no backend '$(BACKEND)'. HINT: BACKEND=cpu or BACKEND=cuda)
endif
ON_GPU = $(filter-out cpu,$(BACKEND))
OF_BACKEND = $(if $(ON_GPU),-$(BACKEND))
LIBRARY = $(BUILD)/libbalise$(OF_BACKEND).a

CUDA ?= $(patsubst %/bin/nvcc,%,$(or $(shell command -v nvcc),$(wildcard /usr/local/cuda/bin/nvcc)))
NVCC = $(if $(CUDA),$(CUDA)/bin/nvcc)
# Every GPU that the toolkit knows has its generation's code, those to come have what the driver compiles. GPU_ARCH=native: this
# machine's alone, in a quarter of the time.
GPU_ARCH ?= $(if $(wildcard /dev/nvidia0),native,all-major)
NVCC_FLAGS = -std=c++17 -g -O3 -arch=$(GPU_ARCH) -Werror all-warnings -Xcompiler -Wall,-Wextra,-Wno-unused-parameter
ifeq ($(BACKEND)$(CUDA),cuda)
ifneq ($(filter grade train bench trace runners,$(MAKECMDGOALS)),)
$(error BACKEND=cuda needs the CUDA Toolkit, and there is no nvcc. HINT: install it, or say where it is: CUDA=/usr/local/cuda; BACKEND=cpu needs none)
endif
endif

GPU_SOURCES := $(wildcard common/backend/cuda/*.cu)
EMULATION = common/backend/tests/emulated_gpu
GPU_OBJECTS = $(patsubst %.cu,$(BUILD)/cuda/%.o,$(GPU_SOURCES))
EMULATED_OBJECTS = $(patsubst %.cu,$(BUILD)/emulated/%.o,$(GPU_SOURCES)) $(patsubst %.cc,$(BUILD)/emulated/%.o,$(wildcard $(EMULATION)/*.cc))
ON_HOST = $(call float,$(filter-out common/backend/cpu/% common/backend/host/%,$(RUNTIME)))
CXX_WARNINGS = -Wall -Wextra -Wno-unused-parameter -Wno-unknown-pragmas -Werror

$(BUILD)/cuda/%.o: %.cu
	mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -D_GNU_SOURCE -Icommon -MMD -MP -c $< -o $@
$(BUILD)/emulated/%.o: %.cu
	mkdir -p $(@D)
	$(CXX) -x c++ -std=gnu++17 -g $(OPTIMISE) $(CXX_WARNINGS) $(SANITIZE) -D_GNU_SOURCE -I$(EMULATION) -Icommon -MMD -MP -c $< -o $@
$(BUILD)/emulated/%.o: %.cc
	mkdir -p $(@D)
	$(CXX) -std=gnu++17 -g $(OPTIMISE) $(CXX_WARNINGS) $(SANITIZE) $(BLAS_CFLAGS) -I$(EMULATION) -MMD -MP -c $< -o $@

$(BUILD)/libbalise-cuda.a: $(ON_HOST) $(GPU_OBJECTS)
	rm -f $@
	ar rcs $@ $^
$(BUILD)/libbalise-emulated.a: $(ON_HOST) $(EMULATED_OBJECTS)
	rm -f $@
	ar rcs $@ $^
LIBS_cuda = -L$(CUDA)/lib64 -Wl,-rpath,$(CUDA)/lib64 -lcublas -lcudart_static -lstdc++ -ldl -lrt -lpthread
LIBS_emulated = -lstdc++
LDLIBS += $(LIBS_$(BACKEND))

# Before anything is graded: is there a GPU? Otherwise that is said once, and not by each rank of each lab.
GPU_OPTION = $(if $(filter cuda,$(BACKEND)),--gpu)
GPU_PROBE = $(if $(filter cuda,$(BACKEND)),there-is-a-gpu)
$(BUILD)/kernels$(OF_BACKEND): $(call float,common/backend/describe_main.c common/base/tests/stop_at_misuse.c) $(LIBRARY)
	$(CC) $(LDFLAGS) $^ -o $@ $(LDLIBS)
.PHONY: there-is-a-gpu
there-is-a-gpu: $(BUILD)/kernels$(OF_BACKEND)
	$< > /dev/null

-include $(shell find $(BUILD)/cuda $(BUILD)/emulated -name '*.d' 2>/dev/null)
