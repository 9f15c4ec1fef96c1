# What the grader's own tests need from make: how to compile and link a lab, as shell variables.
# Included by the Makefile.
test_objects = $(foreach n,$(LAB_$(1)_NEEDS),$(BUILD)/labs/solution/$(n).o) \
    $(call start_objects,float,$(LAB_$(1)_BESIDE)) $(RUNNER_PARTS) $(LIBRARY)
GRADING = $(BUILD)/generated/grading$(OF_BACKEND).sh
define test_lab
FILE_$(1)='$(call lab_file,$(1))' EXPORTS_$(1)='$(LAB_$(1)_EXPORTS)' OBJECTS_$(1)='$(call test_objects,$(1))'

endef
$(GRADING): Makefile $(wildcard grader/*.mk) $(sort $(foreach lab,$(LABS),$(call test_objects,$(lab)))) $(BUILD)/grade
	mkdir -p $(@D)
	$(file >$@,$(foreach lab,$(LABS),$(call test_lab,$(lab))))
	printf '%s\n' "export CC='$(CC)' CFLAGS='$(LAB_CFLAGS)' ENCLOSE='$(abspath $(BUILD)/enclose)'" \
	    "export LDFLAGS='$(RUNNER_LDFLAGS)' LDLIBS='$(RUNNER_LDLIBS)'" >> $@

# Grades every wrong answer, every unusual right one, and the solutions over some seeds; prints a
# table, the margins and the mutation score.
.PHONY: test-grader
test-grader: $(GRADING)
	ALL=1 BUILD='$(BUILD)' ROOT='$(CURDIR)' grader/tests/slow_mutants.sh
