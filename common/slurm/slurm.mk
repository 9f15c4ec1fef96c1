# Clusters: make sbatch, make grade ON=slurm. What is said of a job comes from the command line, or from site.mk, a file of the
# user's own beside the Makefile (site-example.mk here shows one), and not from the environment, where NAME and TIME mean other things.
SITE ?= site.mk
ifneq ($(filter command%,$(origin SITE)),)
ifeq ($(wildcard $(SITE)),)
$(error $(shell $(TELL) stop "there is no file '%s'" "SITE names a file as common/slurm/site-example.mk" $(call quoted,$(SITE))))
endif
endif
-include $(SITE)

ifneq ($(filter-out slurm,$(ON))$(filter-out 0 1,$(words $(ON))),)
$(error $(shell $(TELL) stop "nothing is graded on '%s'" "make grade ON=slurm, or without ON on this machine" $(call quoted,$(ON))))
endif
ifneq ($(ON),)
ifneq ($(filter-out grade,$(MAKECMDGOALS)),)
$(error $(shell $(TELL) stop "ON is for make grade alone" "make grade ON=slurm; make sbatch trains on a cluster"))
endif
endif

# Where scripts and what jobs print lie.
SLURM_FOLDER = $(BUILD)/slurm
ON_SLURM = common/slurm/submit.sh
said = $(if $(filter environment,$(origin $(1))),,$(value $(1)))
define job_setting
$(1): export $(2) := $$(call said,$(3))

endef
define job_settings
$(1): export JOB_FOLDER = $$(SLURM_FOLDER)
$(foreach word,NAME PARTITION ACCOUNT TIME QOS CONSTRAINT GPUS NODES CPUS START,$(call job_setting,$(1),JOB_$(word),$(word)))
$(foreach word,MODULES SBATCH SETUP,$(call job_setting,$(1),SITE_$(word),$(word)))
endef
$(eval $(call job_settings,sbatch))
$(eval $(call job_settings,doctor))
$(if $(ON),$(eval $(call job_settings,grade)))
