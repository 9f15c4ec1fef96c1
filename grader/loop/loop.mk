# The student's commands besides make grade: watch, hint, solution, progress, reset, predict,
# measure, debug. BUILD/verdicts holds the last verdicts.
LAST_VERDICT = $(BUILD)/verdicts/$(if $(LAB),$(LAB),$(if $(filter-out 1,$(PART)),part$(PART),all)).json
NOT_KEPT = $(or $(filter solution,$(AUTHOR)),$(filter-out $(LABS),$(LAB)),$(CASE),$(SAN),$(ON_GPU))
KEEP_VERDICT = $(if $(NOT_KEPT),,--format json --out $(LAST_VERDICT))
in_loop = $(call as_environment,LAB BUILD)

.PHONY: watch hint solution progress reset predict
# make watch uses the same seed each time, so that any change in the verdict is due to the student.
watch hint solution progress reset predict measure: $(BUILD)/generated/labs.json | $(CATALOGUES)
# exec: the shell would end by Ctrl-C, and make would print that as an error.
watch:
	$(RELEASE)
	exec env $(in_loop) GRADING='$(MAKE) SEED=$(or $(SEED),1) $(if $(STACK),STACK=$(STACK))' grader/loop/watch.py
hint:
	$(in_loop) AGAIN=$(call quoted,$(AGAIN)) grader/loop/hint.py
solution:
	$(in_loop) ASK=$(call quoted,$(ASK)) grader/loop/solution.py
progress:
	$(in_loop) grader/loop/progress.py
# predict notes a number that the student expects; measure counts the same number in one case.
predict:
	$(in_loop) IS=$(call quoted,$(IS)) grader/loop/predict.py
measure:
	$(in_loop) MEASURING=$(call quoted,$(call judge,$(RUNNERS)) --measure) AUTHOR=$(AUTHOR) grader/loop/measure.py
# reset restores the start file, and forgets the lab's hints, predictions and verdict. A copy of the
# work is kept.
reset: start
	$(in_loop) grader/loop/forget.py

# The case that trace, tape, report and debug show: the one that SEED and CASE name or, for a
# student's lab, the last one that failed.
FAILED = $(if $(or $(SEED),$(CASE),$(SOLUTION)),,$(shell $(in_loop) grader/loop/failing.py 2> /dev/null))
SHOWN = $(call option,--seed,$(or $(SEED),$(word 1,$(FAILED)))) $(call option,--case,$(or $(CASE),$(word 2,$(FAILED))))

# debug runs gdb on one rank, with unoptimised labs, so that gdb finds every variable. If a check of what
# a layer computes failed, gdb does not stop where the layer is made.
STOPS = $(or $(if $(filter-out initial sharding,$(word 3,$(FAILED))),$(filter-out %_new,$(LAB_$(LAB)_EXPORTS))),\
    $(LAB_$(LAB)_EXPORTS))
.PHONY: debug runners-for-gdb
runners-for-gdb: $(if $(LAB),$(foreach lab,$(GRADED),$(call runner,$(AUTHOR),$(lab))))
debug: $(BUILD)/grade
	$(MAKE) FOR_GDB=-for-gdb runners-for-gdb
	$(RELEASE)
	$(call judge,$(RUNNERS)-for-gdb) --debug $(call option,--rank,$(RANK)) --stops '$(STOPS)' $(SHOWN)
