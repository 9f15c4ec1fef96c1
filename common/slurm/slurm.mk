# Clusters: make sbatch, make grade ON=slurm. Settings of a job come from the command line or from
# site.mk, the user's own file beside the Makefile (see site-example.mk), but not from the
# environment, where NAME and TIME have other meanings.
-include $(SITE)

# The folder of the scripts and of the jobs' output.
SLURM_FOLDER = $(BUILD)/slurm
ON_SLURM = common/slurm/submit.sh
said = $(if $(filter environment,$(origin $(1))),,$(value $(1)))
OF_JOB = NAME PARTITION ACCOUNT TIME QOS CONSTRAINT GPUS NODES CPUS START
OF_SITE = MODULES SBATCH SETUP
define job_setting
$(1): export $(2) := $$(call said,$(3))

endef
define job_settings
$(1): export JOB_FOLDER = $$(SLURM_FOLDER)
$(foreach word,$(OF_JOB),$(call job_setting,$(1),JOB_$(word),$(word)))
$(foreach word,$(OF_SITE),$(call job_setting,$(1),SITE_$(word),$(word)))
endef
$(eval $(call job_settings,sbatch))
$(eval $(call job_settings,doctor))
$(if $(ON),$(eval $(call job_settings,grade)))
