# make story: a text, written by a trained language model.

STORY = $(dir $(TRAIN))story$(OF_BACKEND)

ifneq ($(TRAINS),)
$(STORY).list: LINKED_OF = $(TRAIN_PARTS)
$(STORY): $(STORY).list $(TRAIN_PARTS) $(BUILD)/float/common/story/story_main.o $(LIBRARY) grader/link-train.sh \
          | $(CATALOGUES)
	$(call as_environment,CC LDFLAGS LDLIBS) grader/link-train.sh $@ $(filter %.o %.a,$^) $(or_full)
endif

.PHONY: story
story: $(STORY)
	$(RELEASE)
	$(if $(filter mine,$(STACK)),grader/stack.py tell mine $(UPTO) >&2)
	common/train/launch.sh $(call quoted,$(NTASKS)) $(or $(STACK),solutions) $(call stack,stage) $(STORY) \
	    $(call options_of,story)
