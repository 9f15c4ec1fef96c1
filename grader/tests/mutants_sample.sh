#!/usr/bin/env bash
# Some of the wrong answers, one for each check of each lab at least, and an unusual right one a lab; slow_mutants.sh has all.
exec bash "$(dirname "$0")/mutants.sh" \
    '/01-(f_no_ar|g_inplace|reduce_no_bcast|whole_gather|no_coll|segfault|reduce_scatter|direct_mpi)' \
    '/02-(no_f|ag_dim0|ag_bwd_rs|full_weight|same_seed|own_gather)' \
    '/03-(values_only|v_floor|full_table|f_after|renamed|vocabulary)' \
    '/04-(no_f|no_g|factor_hidden|wo_full|f_three_times)' \
    '/05-(one_replaced|double_f|ff_4h|dropout_first|up_written_out)' \
    '/06-(no_f|two_colwise|act_after_g|dropout_same|full_over_T|in_place_mpi)' \
    '/07-(g_again|f_again|classifier_left|shared_norm|pair_written_out)' \
    '/08-(color_mod_D|color_by_groups|reversed_key|partial_call|key_0)' \
    '/09-(f_bwd_world|gather_world|barrier|direct_mpi)' \
    '/10-(color_div_T|overwritten|dp_rank_wrong|key_0)' \
    '/11-(s_seed_rank|s_no_epoch|s_tp_split|s_every_pads|g_no_div|g_world_by_world|g_one_forgotten|g_twice\.|m_average_of_averages|m_world_sum|blocking|blocks\.)'
