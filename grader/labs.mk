# The labs, for make, one line each. grader/labs/labNN.c holds everything else that the grader knows
# about a lab.
#
# $(call add_lab,NUMBER,FOLDER/FILE,labs whose functions it calls,labs whose start files stand
# in,functions that it defines). The student edits labs/FOLDER/FILE; solutions/FOLDER/FILE is the
# reference. Start files stand in for functions of other labs that must be linked: those of labs 8
# and 10 for the groups, that of lab 5 for the feed-forward layer that lab 7 replaces.
define lab_record
LABS += $1
LAB_$1_FOLDER = $(patsubst %/,%,$(dir $2))
LAB_$1_FILE = $(notdir $2)
LAB_$1_NEEDS = $3
LAB_$1_BESIDE = $4
LAB_$1_EXPORTS = $5
LAB_$1_PART = $(PART_OF_COURSE)
endef
add_lab = $(eval $(call lab_record,$1,$2,$3,$4,$5))
# lab_file, NUMBER: its FOLDER/FILE.
lab_file = $(LAB_$(1)_FOLDER)/$(LAB_$(1)_FILE)

PART_OF_COURSE := 1
$(call add_lab,1,01-duplication-allreduce/collectives.c,,8 10,\
    duplication_forward duplication_backward all_reduce_forward all_reduce_backward all_gather_forward \
    all_gather_backward)
$(call add_lab,2,02-colwise-linear/colwise-linear.c,1,8 10,\
    col_wise_linear_new col_wise_linear_forward)
$(call add_lab,3,03-embedding/embedding.c,1,8 10,embedding_new embedding_forward)
$(call add_lab,4,04-attention/attention.c,1,8 10,attention_new attention_forward)
$(call add_lab,5,05-feed-forward/feed-forward.c,1 2,8 10,feed_forward_new feed_forward_forward)
$(call add_lab,6,06-colrow-pair/colrow-pair.c,1,8 10,\
    col_row_linear_pair_new col_row_linear_pair_forward)
$(call add_lab,7,07-block-classifier/block-classifier.c,1 4 6,5 8 10,\
    block_new block_forward classifier_new classifier_forward)
$(call add_lab,8,08-tp-group/tp-group.c,,10,mesh_init_tp)
$(call add_lab,9,09-grouped-collectives/grouped-collectives.c,8,10,\
    duplication_forward duplication_backward all_reduce_forward all_reduce_backward all_gather_forward \
    all_gather_backward)
$(call add_lab,10,10-dp-group/dp-group.c,8,,mesh_init_dp)
$(call add_lab,11,11-data-parallel/data-parallel.c,9 3 4 6 7 8 10,,\
    sampler_set_epoch bucket_ready buckets_finish metrics_synchronise)

PART_OF_COURSE := 2
$(call add_lab,12,12-stages/stages.c,9 3 4 6 7 8 10,,\
    stage_blocks forward_step backward_step pipeline_step)
$(call add_lab,13,13-micro-batches/micro-batches.c,12 9 3 4 6 7 8 10,,\
    stage_send gpipe_step one_f_one_b_step)
$(call add_lab,14,14-grid-3d/grid-3d.c,13 12 11 9 3 4 6 7 8 10,,\
    mesh_init_3d bucket_filled metrics_over_stages gradient_norm)
$(call add_lab,15,15-ring-all-reduce/ring-all-reduce.c,,8 10,\
    ring_chunk ring_reduce_scatter ring_all_gather)
$(call add_lab,16,16-average-weights/average-weights.c,8 10,,average_is_due average_weights)
$(call add_lab,17,17-sharded-optimizer/sharded-optimizer.c,8 10,,\
    optimizer_part reduce_scatter_gradients squares_over_parts sharded_step)
$(call add_lab,18,18-sequence-parallel/sequence-parallel.c,9 8 10,,\
    gather_sequence_forward gather_sequence_backward reduce_scatter_sequence_forward \
    reduce_scatter_sequence_backward sequence_block_forward sum_norm_gradients)
$(call add_lab,19,19-recompute/recompute.c,9 8 10,,recompute_forward recompute_backward)
$(call add_lab,20,20-parallel-linears/parallel-linears.c,9 8 10,,\
    scatter_forward scatter_backward column_parallel_linear_new column_parallel_linear_forward \
    row_parallel_linear_new row_parallel_linear_forward query_key_value_new query_key_value_forward)
$(call add_lab,21,21-language-model/language-model.c,9 8 10,,\
    vocabulary_embedding vocabulary_logits vocabulary_parallel_cross_entropy)
# Functions of other labs that a lab may call although it does not build on those labs. The kit
# gives stage_send to lab 12. Lab 7 starts with FeedForward, and the judge reports a FeedForward
# that is still there.
LENT_7 = feed_forward_new feed_forward_forward
LENT_12 = stage_send
# The function of a lab that must only start an exchange, and return at once.
STARTS_11 = bucket_ready
STARTS_13 = stage_send
STARTS_14 = bucket_filled
# Labs that only some checks of lab 11 need, as pairs LAB:START. If LAB is not started, the start
# file of START stands in for it, so that the other checks can run.
STAND_INS_11 = 9:1 3:3 4:4 6:6 7:7 7:5

# The labs whose functions make train calls. At a stage before such a lab, something stands in for
# it and for the labs in its fourth field: a layer of common/model/serial, weak functions of the
# library (labs 14, 20 and 21), or else the start file. Nothing stands in for labs 15 to 19: without
# them, make train refuses the settings that need them.
TRAINED = 1 3 4 7 8 10 11 12 13 14 15 16 17 18 19 20 21
SERIAL_LAYERS = 1:serial_collectives 3:serial_embedding 4:serial_attention 13:serial_schedule
NOTHING_LINKED = 14 15 16 17 18 19 20 21
FROM_START_FILES = $(filter-out $(NOTHING_LINKED) $(foreach pair,$(SERIAL_LAYERS),$(firstword $(subst :, ,$(pair)))), \
                     $(sort $(TRAINED) $(foreach lab,$(TRAINED),$(LAB_$(lab)_BESIDE))))
# After these labs the parts fit together, and make train STACK=mine can use them.
STAGES = 5 7 9 11 12 13 14 15 16 17 18 19 20 21
# No later stage needs these.
OPTIONAL = 15 16 17 18 19 20
