# Which variables come from the command line and from the environment. Included by the Makefile.

SET := $(foreach name,$(.VARIABLES),$(if $(filter command%,$(origin $(name))),$(name)))
EMPTY := $(foreach name,$(SET),$(if $(value $(name)),,$(name)))
# Settings with a $ that make would expand. They are emptied at once, because $(shell) exports settings
# and so expands them; check.sh reports them.
# expanded, NAME: the name, if its value has such a $.
expanded = $(and $(filter recursive,$(flavor $(1))),$(findstring $$,$(subst $$$$,,$(value $(1)))),$(1))
DOLLAR := $(strip $(if $(filter 0,$(MAKELEVEL)),$(foreach name,$(SET),$(call expanded,$(name)))))
$(foreach name,$(DOLLAR),$(eval override $(name) :=))
# A setting among these may be meant for another program.
STRAY = $(foreach name,$(.VARIABLES),$(if $(filter environment,$(origin $(name))),$(name)))

# Make takes a folder with a blank for two; check.sh refuses this name.
ifneq ($(word 2,$(BUILD)),)
override BUILD := $(subst $() ,?,$(BUILD))
endif

# Variables of a user's shell that change what scripts do. $(shell) does not heed unexport.
OF_SHELLS = BASH_ENV BASHOPTS SHELLOPTS CDPATH GREP_OPTIONS POSIXLY_CORRECT
unexport $(OF_SHELLS)
AS_USUAL = env $(OF_SHELLS:%=-u %)
# If this machine lacks the locale, bash warns in each script. The language is kept.
ifneq ($(filter-out C POSIX C.%,$(LC_ALL)),)
ifneq ($(shell bash -c : 2>&1),)
export LANGUAGE := $(or $(LANGUAGE),$(LC_ALL))
export LC_ALL := C.UTF-8
AS_USUAL += LANGUAGE='$(LANGUAGE)' LC_ALL=C.UTF-8
endif
endif

# Make runs each line of a recipe in a shell of its own, so this shell reads the line breaks of a
# setting from its environment (see `quoted`).
define LINE_BREAK


endef
export LINE_BREAK
