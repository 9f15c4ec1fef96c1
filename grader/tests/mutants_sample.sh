#!/usr/bin/env bash
# A sample of the answers to part 1: a wrong one for each check of each lab, and an unusual right one
# per lab. slow_mutants.sh runs all answers.
exec bash "$(dirname "$0")/mutants.sh" \
    '/01-(f_no_ar|g_inplace|whole_gather|direct_mpi)' \
    '/02-(ag_bwd_rs|full_weight|same_seed|own_gather)' \
    '/03-(values_only|v_floor|full_table|f_after|vocabulary$)' \
    '/04-(no_f|factor_hidden|wo_full|f_three_times)' \
    '/05-(one_replaced|double_f|ff_4h|up_written_out)' \
    '/06-(no_f|two_colwise|act_after_g|full_over_T|in_place_mpi)' \
    '/07-(g_again|f_again|classifier_left|pair_written_out)' \
    '/08-(color_by_groups|key_0)' \
    '/09-(f_bwd_world|gather_world|barrier$|direct_mpi)' \
    '/10-(color_div_T|key_0)' \
    '/11-(s_every_pads|g_world_by_world|m_average_of_averages|blocking)'
