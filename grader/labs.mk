# The labs, for make, the grader and the handout: one paragraph a lab.
#
# FOLDER and FILE   labs/FOLDER/FILE is what the student edits; solutions/FOLDER/FILE is the reference
# SLOT              what the lab provides to the model (see DESIGN); EXPORTS: the functions that it must define
# NEEDS             the labs whose functions the grader links beside it; BESIDE: those whose start files it links
# START             empty: a TODO is reached; working: the start file runs, and is "not started" while its tokens are unchanged
#                   lab 1: it begins from the student's own lab 1
# LAYOUTS           the worlds that are graded: 4 (tp = world), or 6x2 (world 6, tp 2)
# CHECKS            what is looked at, and the points for it; labs 1 to 11 make 100 together
# FORWARD, BACKWARD how many numbers may be sent in a pass, summed over the group of n ranks, as a C expression in the letters
#                   of balise.h (F inner width, OUT output width, C classes, N = numbers of the tensor, PART and VOCABULARY
#                   as the lab's play says); FORWARD_CALLS, BACKWARD_CALLS: collectives that this takes
# WRITES            of a start file that works: the functions that a check is about. While these are as they were handed out, it
#                   is to do, and not wrong
# CUTS              the dimension along which each parameter is cut, by the end of its name; all others are whole
LABS = 1 2 3 4 5 6 7 8 9 10 11

LAB_1_FOLDER = 01-duplication-allreduce
LAB_1_FILE = collectives.c
LAB_1_TITLE = Duplication and AllReduce
LAB_1_SLOT = collectives
LAB_1_EXPORTS = duplication_forward duplication_backward all_reduce_forward all_reduce_backward all_gather_forward all_gather_backward
LAB_1_NEEDS =
LAB_1_BESIDE = 8 10
LAB_1_START = empty
LAB_1_LAYOUTS = 1 2 3 4 5
LAB_1_CHECKS = forward:3 input_gradient:4 communication:2
LAB_1_FORWARD = PART == 0 ? 0 : PART == 2 || PART == 3 ? (n-1)*N : 2*(n-1)*N
LAB_1_BACKWARD = PART == 0 ? 2*(n-1)*N : 0
LAB_1_FORWARD_CALLS = 1
LAB_1_BACKWARD_CALLS = 1
LAB_1_CUTS = 

LAB_2_FOLDER = 02-colwise-linear
LAB_2_FILE = colwise-linear.c
LAB_2_TITLE = ColWiseLinear
LAB_2_SLOT = col_wise_linear
LAB_2_EXPORTS = col_wise_linear_new col_wise_linear_forward
LAB_2_NEEDS = 1
LAB_2_BESIDE = 8 10
LAB_2_START = empty
LAB_2_LAYOUTS = 1 2 3 4
LAB_2_CHECKS = forward:1 input_gradient:1 weight_gradient:1 step:1 initial_values:1 sharding:2 arithmetic:1 communication:1
LAB_2_FORWARD = (n-1)*B*S*OUT
LAB_2_BACKWARD = 2*(n-1)*B*S*H
LAB_2_FORWARD_CALLS = 1
LAB_2_BACKWARD_CALLS = 1
LAB_2_CUTS = weight:0

LAB_3_FOLDER = 03-embedding
LAB_3_FILE = embedding.c
LAB_3_TITLE = Embedding
LAB_3_SLOT = embedding
LAB_3_EXPORTS = embedding_new embedding_forward
LAB_3_NEEDS = 1
LAB_3_BESIDE = 8 10
LAB_3_START = empty
LAB_3_LAYOUTS = 1 2 3 4
LAB_3_CHECKS = forward:2 weight_gradient:1 step:1 initial_values:1 sharding:1 arithmetic:1 communication:1
LAB_3_FORWARD = (VOCABULARY ? 2 : 1)*(n-1)*B*S*H
LAB_3_BACKWARD = 0
LAB_3_FORWARD_CALLS = 1
LAB_3_BACKWARD_CALLS = 0
LAB_3_CUTS = weight:0|1

LAB_4_FOLDER = 04-attention
LAB_4_FILE = attention.c
LAB_4_TITLE = MultiHeadSelfAttention
LAB_4_SLOT = attention
LAB_4_EXPORTS = attention_new attention_forward
LAB_4_NEEDS = 1
LAB_4_BESIDE = 8 10
LAB_4_START = empty
LAB_4_LAYOUTS = 1 2 3 4
LAB_4_CHECKS = forward:2 input_gradient:2 weight_gradient:1 step:1 initial_values:1 sharding:1 arithmetic:1 communication:1
LAB_4_FORWARD = 2*(n-1)*B*S*H
LAB_4_BACKWARD = 2*(n-1)*B*S*H
LAB_4_FORWARD_CALLS = 1
LAB_4_BACKWARD_CALLS = 1
LAB_4_CUTS = query:0 key:0 value:0 output:1

LAB_5_FOLDER = 05-feed-forward
LAB_5_FILE = feed-forward.c
LAB_5_TITLE = FeedForwardBlock
LAB_5_SLOT = feed_forward
LAB_5_EXPORTS = feed_forward_new feed_forward_forward
LAB_5_NEEDS = 1 2
LAB_5_BESIDE = 8 10
LAB_5_START = working
LAB_5_LAYOUTS = 1 2 3 4
LAB_5_CHECKS = forward:1 input_gradient:1 weight_gradient:1 step:1 initial_values:1 sharding:1 arithmetic:1 communication:1
LAB_5_FORWARD = (n-1)*B*S*(F+OUT)
LAB_5_BACKWARD = 2*(n-1)*B*S*(H+F)
LAB_5_FORWARD_CALLS = 2
LAB_5_BACKWARD_CALLS = 2
LAB_5_CUTS = up.weight:0 down.weight:0

LAB_6_FOLDER = 06-colrow-pair
LAB_6_FILE = colrow-pair.c
LAB_6_TITLE = ColRowLinearPair
LAB_6_SLOT = pair
LAB_6_EXPORTS = col_row_linear_pair_new col_row_linear_pair_forward
LAB_6_NEEDS = 1
LAB_6_BESIDE = 8 10
LAB_6_START = empty
LAB_6_LAYOUTS = 1 2 3 4
LAB_6_CHECKS = forward:2 input_gradient:1 weight_gradient:1 step:1 initial_values:1 sharding:1 arithmetic:1 communication:2
LAB_6_FORWARD = 2*(n-1)*B*S*OUT
LAB_6_BACKWARD = 2*(n-1)*B*S*H
LAB_6_FORWARD_CALLS = 1
LAB_6_BACKWARD_CALLS = 1
LAB_6_CUTS = up.weight:0 down.weight:1

LAB_7_FOLDER = 07-block-classifier
LAB_7_FILE = block-classifier.c
LAB_7_TITLE = Block and Classifier
LAB_7_SLOT = block
LAB_7_EXPORTS = block_new block_forward classifier_new classifier_forward
LAB_7_NEEDS = 1 4 6
LAB_7_BESIDE = 5 8 10
LAB_7_START = working
LAB_7_LAYOUTS = 1 2 3 4
LAB_7_CHECKS = forward:2 input_gradient:1 weight_gradient:1 step:1 initial_values:1 sharding:1 arithmetic:1 communication:1
LAB_7_FORWARD = PART == 0 ? 4*(n-1)*B*S*H : 2*(n-1)*B*C
LAB_7_BACKWARD = PART == 0 ? 4*(n-1)*B*S*H : 2*(n-1)*B*H
LAB_7_FORWARD_CALLS = PART == 0 ? 2 : 1
LAB_7_BACKWARD_CALLS = PART == 0 ? 2 : 1
LAB_7_CUTS = attention.query:0 attention.key:0 attention.value:0 attention.output:1 up.weight:0 down.weight:1

LAB_8_FOLDER = 08-tp-group
LAB_8_FILE = tp-group.c
LAB_8_TITLE = TP sub-communicator
LAB_8_SLOT = tp_group
LAB_8_EXPORTS = mesh_init_tp
LAB_8_NEEDS =
LAB_8_BESIDE = 10
LAB_8_START = working
LAB_8_LAYOUTS = 4x2 6x2 6x3 8x4 4x1 4x4 6x1 6x6
LAB_8_CHECKS = groups:7
LAB_8_FORWARD = 0
LAB_8_BACKWARD = 0
LAB_8_FORWARD_CALLS = 1
LAB_8_BACKWARD_CALLS = 1
LAB_8_CUTS =

LAB_9_FOLDER = 09-grouped-collectives
LAB_9_FILE = grouped-collectives.c
LAB_9_TITLE = Collectives on the TP group
LAB_9_SLOT = collectives
LAB_9_EXPORTS = duplication_forward duplication_backward all_reduce_forward all_reduce_backward all_gather_forward all_gather_backward
LAB_9_NEEDS = 8
LAB_9_BESIDE = 10
LAB_9_START = lab 1
LAB_9_LAYOUTS = 4x2 6x2 6x3 4x1 4x4
LAB_9_CHECKS = forward:3 input_gradient:4 communication:1
LAB_9_FORWARD = PART == 0 ? 0 : PART == 2 || PART == 3 ? (n-1)*N : 2*(n-1)*N
LAB_9_BACKWARD = PART == 0 ? 2*(n-1)*N : 0
LAB_9_FORWARD_CALLS = 1
LAB_9_BACKWARD_CALLS = 1
LAB_9_CUTS =

LAB_10_FOLDER = 10-dp-group
LAB_10_FILE = dp-group.c
LAB_10_TITLE = DP sub-communicator
LAB_10_SLOT = dp_group
LAB_10_EXPORTS = mesh_init_dp
LAB_10_NEEDS = 8
LAB_10_START = working
LAB_10_LAYOUTS = 4x2 6x2 6x3 8x2 4x1 4x4 8x4
LAB_10_CHECKS = groups:7
LAB_10_FORWARD = 0
LAB_10_BACKWARD = 0
LAB_10_FORWARD_CALLS = 1
LAB_10_BACKWARD_CALLS = 1
LAB_10_CUTS =

LAB_11_FOLDER = 11-data-parallel
LAB_11_FILE = data-parallel.c
LAB_11_TITLE = Data parallelism
LAB_11_SLOT = data_parallel
LAB_11_EXPORTS = sampler_set_epoch bucket_ready buckets_finish metrics_synchronise
LAB_11_NEEDS = 9 3 4 6 7 8 10
LAB_11_START = working
LAB_11_LAYOUTS = 6x2 4x2 6x3 8x4 8x2 5x1 4x1 4x4 2x1 2x2 1
LAB_11_CHECKS = rows:4 gradient:4 metrics:2 layout:3 communication:2
LAB_11_WRITES = rows:sampler_set_epoch gradient:bucket_ready+buckets_finish metrics:metrics_synchronise layout:bucket_ready+buckets_finish
LAB_11_FORWARD = 2*(n-1)*6
LAB_11_BACKWARD = 2*(n-1)*N
LAB_11_FORWARD_CALLS = 3
LAB_11_BACKWARD_CALLS = PART
LAB_11_CUTS =
