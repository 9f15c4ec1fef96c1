# The student's loop beside make grade: watch, hint, solution, progress, reset, debug. What was graded last lies below BUILD/verdicts.
LAST_VERDICT = $(BUILD)/verdicts/$(if $(LAB),$(LAB),all).json
KEEP_VERDICT = $(if $(or $(filter solution,$(AUTHOR)),$(filter-out $(LABS),$(LAB)),$(CASE),$(SAN),$(ON_GPU)),,--format json --out $(LAST_VERDICT))
in_loop = LAB=$(call quoted,$(LAB)) BUILD=$(call quoted,$(BUILD)) PYTHONDONTWRITEBYTECODE=1

.PHONY: watch hint solution progress reset
# With the same numbers each time, so that a change is the student's.
watch hint solution progress reset: | $(CATALOGUES)
watch:
	$(in_loop) GRADING='$(MAKE) SEED=$(or $(SEED),1) $(if $(STACK),STACK=$(STACK))' grader/loop/watch.py
hint:
	$(in_loop) AGAIN=$(call quoted,$(AGAIN)) grader/loop/hint.py
solution:
	$(in_loop) ASK=$(call quoted,$(ASK)) grader/loop/solution.py
progress: $(START_FILES)
	$(in_loop) grader/loop/progress.py
# As on the first day: the start file, no hint taken, nothing graded. A copy of the work is kept.
reset: start
	$(in_loop) grader/loop/forget.py

# gdb on a rank of the case that failed last, or of the one that is named; of labs that are not optimised, so that it finds every variable.
FAILING = $(if $(or $(SEED),$(CASE)),,$(shell $(in_loop) grader/loop/failing.py 2> /dev/null))
.PHONY: debug runners-for-gdb
runners-for-gdb: $(if $(LAB),$(foreach lab,$(GRADED),$(RUNNERS)/$(call nn,$(lab))-$(AUTHOR)))
debug: $(BUILD)/grade
	$(MAKE) FOR_GDB=-for-gdb runners-for-gdb
	$(BUILD)/grade --debug $(call quoted,$(or $(RANK),0)) --stops '$(LAB_$(LAB)_EXPORTS)' --author $(AUTHOR) --runners $(RUNNERS)-for-gdb $(if $(LAB),--lab $(call quoted,$(LAB))) \
	    $(if $(or $(SEED),$(FAILING)),--seed $(call quoted,$(or $(SEED),$(word 1,$(FAILING))))) $(if $(or $(CASE),$(FAILING)),--case $(call quoted,$(or $(CASE),$(word 2,$(FAILING)))))
