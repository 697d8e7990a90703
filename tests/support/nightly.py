"""CI has ten minutes, so it runs a part of these cases; the profile `nightly` runs all."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Any

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"

FEW = 3  # cases
# tests whose cases are long, by file: CI runs every second case, and every third of more than FEW
LONG: Mapping[str, str] = {
    "attack/test_fused.py": "test_ragged_programs_are_multiplied_by_warpgroups",
    "bench/test_cluster.py": "test_an_address_that_does_not_answer_is_a_mistake_with_a_hint",
    "bench/test_papers.py": "test_candidates_of_the_figures_compile test_versions_of_the_ablation_are_right",
    "bench/test_workers.py": "test_a_process_imports_what_tasks_need_before_its_first_one",
    "codegen/hopper/test_hopper.py": "test_a_cluster_shares_what_it_loads test_copies_are_exact",
    "codegen/test_any_size.py": (
        "test_a_product_of_any_size_is_exact test_kernels_compile"
        " test_operands_with_misaligned_rows_are_computed_where_they_are_copied"
        " test_operands_with_misaligned_rows_are_copied_to_longer_ones"
    ),
    "codegen/test_bulk_stores.py": "test_matrices_of_16_bits_are_stored_without_conflicts",
    "codegen/test_dual_products.py": (
        "test_a_fold_of_triples_by_warpgroups_is_exact test_a_fold_of_triples_by_warps_is_exact"
    ),
    "codegen/test_epilogues.py": "test_an_epilogue_is_fused_and_exact",
    "codegen/test_fragments.py": (
        "test_a_tile_in_shared_memory_is_loaded_by_matrices_however_it_lies"
        " test_fragments_are_fetched_ahead_for_any_number_of_tiles"
        " test_matrices_are_loaded_without_bank_conflicts test_products_are_exact"
        " test_products_of_quad_pairs_are_exact test_swizzled_tiles_are_read_as_they_were_written"
        " test_the_text_compiles test_tiles_of_tf32_are_loaded_by_matrices_along_k_only"
    ),
    "codegen/test_fused.py": (
        "test_no_register_is_spilled test_tiles_may_stick_out"
        " test_what_is_done_with_a_product_is_fused_and_exact"
        " test_what_needs_whole_rows_is_one_pass_or_a_kernel_after_the_product"
    ),
    "codegen/test_goal_program.py": "test_it_is_exact_in_the_emulator",
    "codegen/test_golden.py": "test_a_kernel_reads_like_this",
    "codegen/test_grouped_reads.py": "test_groups_and_periods_of_any_size_are_exact",
    "codegen/test_indices.py": (
        "test_a_pad_adds_as_much_text_as_the_one_before test_no_pass_changes_what_is_touched"
        " test_nothing_is_divided_in_loops"
    ),
    "codegen/test_interior.py": (
        "test_one_version_where_all_tiles_are_inside_or_none test_tiles_inside_have_no_conditions"
    ),
    "codegen/test_loaded_ahead.py": (
        "test_bytes_and_threads_are_those_of_the_kernel"
        " test_programs_are_exact_under_schedules_drawn_at_random"
        " test_several_matrices_results_and_products_are_exact test_sizes_may_be_open_until_launch"
    ),
    "codegen/test_open_products.py": "test_tiles_that_the_copying_unit_brings_stick_out_at_launch",
    "codegen/test_overlap.py": "test_a_kernel_that_waits_too_late_is_found",
    "codegen/test_parts_of_arrays.py": (
        "test_a_part_is_read_in_place_or_copied test_auto_takes_warpgroups_whatever_the_part"
        " test_one_number_of_each_element_is_copied"
    ),
    "codegen/test_passes.py": "test_a_pass_that_breaks_a_kernel_is_named",
    "codegen/test_pipeline.py": (
        "test_derived_products_are_exact test_sizes_that_tiles_do_not_divide_are_rounded_up"
    ),
    "codegen/test_reads_before_writes.py": "test_padded_rows_are_where_runs_were",
    "codegen/test_rings.py": "test_a_ring_goes_on_from_tile_to_tile",
    "codegen/test_roles.py": (
        "test_blocks_of_a_cluster_load_for_each_other test_operands_lie_along_k_or_across"
        " test_programs_around_a_product_are_exact test_the_ring_goes_on_from_tile_to_tile"
        " test_the_text_compiles_without_remarks test_warpgroups_take_turns"
    ),
    "codegen/test_runtime.py": "test_kernels_compile_for_every_target",
    "codegen/test_several_by_default.py": "test_products_are_for_tensor_cores_and_what_is_between_by_default",
    "codegen/test_shipped_kernels.py": "test_a_strategy_makes_kernels_for_its_targets",
    "codegen/test_skipping.py": (
        "test_persistent_blocks_go_on_where_shares_differ test_what_a_mask_excludes_is_not_read"
        " test_what_both_of_two_masks_exclude_is_not_read"
    ),
    "codegen/test_staging.py": (
        "test_steps_of_k_are_shared_out_among_warps test_tiles_in_groups_of_rows"
        " test_two_products_of_different_depth"
    ),
    "codegen/test_started_beside.py": "test_a_product_waits_behind_its_first_tiles",
    "codegen/test_waits.py": "test_no_wait_can_be_left_out_or_be_later test_programs_are_exact",
    "codegen/test_warpgroup_operands.py": (
        "test_a_function_of_the_first_operand_is_applied_in_registers"
        " test_operands_of_other_sizes_are_multiplied"
    ),
    "codegen/test_warpgroups.py": "test_any_number_of_tiles_goes_through_the_ring",
    "codegen/test_widths.py": "test_large_arrays_are_indexed_exactly",
    "rewrites/test_joint.py": "test_rows_that_registers_do_not_hold_are_reduced_in_one_pass",
    "rewrites/test_parts.py": "test_a_wrong_combination_is_noticed",
    "rewrites/test_planted.py": "test_a_planted_redex_is_found",
    "rise/test_library_faults.py": "test_a_fault_is_noticed",
    "rise/test_testing.py": "test_the_evaluators_agree_on_a_primitive",
    "strategies/test_attention_of_parts.py": (
        "test_parts_are_attended_in_one_pass"
        " test_warpgroups_take_parts_whose_rows_start_at_multiples_of_16_bytes"
    ),
    "strategies/test_auto.py": (
        "test_a_product_stands_behind_a_kernel_beside_which_it_does_not_build"
        " test_a_program_is_cut_where_a_value_must_be_complete"
        " test_arrays_of_matrices_with_odd_rows_are_copied_as_a_whole"
        " test_bytes_with_a_number_beside_their_row_are_an_operand"
        " test_every_program_is_right_at_every_size test_norms_inside_of_a_product_are_computed_once"
        " test_there_is_a_choice_for_every_gpu test_two_results_of_products_are_one_kernel"
        " test_warpgroups_take_operands_of_every_type_and_layout"
        " test_what_is_said_row_by_row_gets_the_schedules_of_its_parts"
    ),
    "strategies/test_batch.py": (
        "test_a_warp_may_have_several_fragments_of_rows test_all_global_accesses_are_wide"
        " test_fragments_of_odd_rows_come_from_padded_ones test_operands_of_32_bits_are_multiplied"
        " test_other_batches_are_exact test_products_of_any_size_are_exact"
        " test_results_in_rows_apart_are_exact test_rows_come_by_the_widest_vectors_that_divide_them"
    ),
    "strategies/test_batch_in_bulk.py": (
        "test_few_matrices_are_tiles_or_come_by_threads"
        " test_few_matrices_are_tiles_where_rows_of_one_operand_are_odd"
        " test_fragments_of_swizzled_rows_are_loaded_without_conflicts"
        " test_matrices_that_indices_choose_are_copied_so_too"
        " test_no_thread_moves_operands_or_results_of_global_memory"
        " test_only_the_last_terms_of_a_sum_are_under_conditions"
        " test_other_types_and_epilogues_are_exact test_padded_rows_take_fewer_wavefronts_than_runs"
        " test_products_of_any_sizes_are_exact"
        " test_registers_are_left_for_as_many_blocks_as_keep_memory_busy"
        " test_rows_that_start_in_few_banks_are_swizzled_and_exact test_runs_in_padded_rows_are_exact"
        " test_the_last_block_brings_the_matrices_that_exist"
        " test_the_chosen_order_takes_fewer_wavefronts_than_the_plain_one"
        " test_tiles_of_few_matrices_are_copied_as_wide_as_rows_allow"
    ),
    "strategies/test_batch_parts.py": "test_what_stands_around_products_stays_in_the_kernel",
    "strategies/test_batches_in_kernels.py": (
        "test_batches_of_distances_are_exact test_functions_of_all_elements_are_functions_of_rows"
        " test_norms_beside_products_are_computed_before"
        " test_rows_of_products_are_one_kernel_behind_them test_sums_of_each_element_are_no_loops"
    ),
    "strategies/test_beside.py": "test_rows_are_reduced_by_those_who_hold_them",
    "strategies/test_choosing.py": (
        "test_few_candidates_are_derived test_few_schedules_are_priced_for_the_first"
    ),
    "strategies/test_chosen_matrices.py": "test_matrices_of_any_size_come_by_vectors_that_divide_them",
    "strategies/test_clusters_of_passes.py": "test_clusters_agree_with_the_interpreter",
    "strategies/test_columns.py": "test_rows_are_reduced_in_the_loop_of_their_product",
    "strategies/test_contiguity.py": "test_rows_start_where_views_say",
    "strategies/test_cost.py": (
        "test_sums_added_to_a_matrix_take_what_was_measured test_what_is_ranked_becomes_a_strategy"
    ),
    "strategies/test_cuda_core.py": (
        "test_all_pairs_of_rows_are_reduced test_auto_takes_threads_for_what_tensor_cores_do_not_compute"
        " test_blocks_share_long_reductions test_floats_are_added_in_the_order_of_the_program"
        " test_the_kernels_of_programs"
    ),
    "strategies/test_example_schedules.py": "test_a_variant_is_exact",
    "strategies/test_family.py": "test_the_strategy_that_fits_derives_a_kernel",
    "strategies/test_finer_tiles.py": "test_operands_in_the_other_order_give_the_same_sums",
    "strategies/test_found_products.py": "test_products_are_multiplied_by_tensor_cores",
    "strategies/test_groups.py": (
        "test_any_schedule_takes_groups test_auto_makes_one_kernel_of_groups"
        " test_operands_that_indices_choose_are_multiplied"
        " test_persistent_blocks_take_the_tiles_of_all_matrices test_rows_need_not_be_whole_chunks"
        " test_rows_of_uneven_groups_are_multiplied_by_the_matrix_of_their_group"
        " test_one_program_computes_tables_and_products test_tables_that_contradict_each_other_make_no_races"
        " test_the_last_tiles_are_finer_ones_of_a_second_kernel"
        " test_threads_bring_tiles_that_are_no_boxes"
        " test_tiles_of_several_groups_are_taken_column_by_column"
        " test_warpgroups_without_rows_multiply_nothing"
    ),
    "strategies/test_hopper_page.py": "test_a_parameter_is_done_by_its_rules",
    "strategies/test_in_one_sum.py": (
        "test_schedules_of_one_product_take_sums_of_two test_sums_are_exact_in_one_ring"
    ),
    "strategies/test_matmul_schedules.py": "test_a_composition_derives_what_the_parameters_do",
    "strategies/test_modified_scores.py": "test_modified_scores_agree_with_the_interpreter",
    "strategies/test_nested_batches.py": (
        "test_auto_takes_nested_arrays_as_one_batch test_larger_matrices_are_tiles"
        " test_other_programs_are_batches"
    ),
    "strategies/test_normal_forms.py": "test_a_normal_form_is_reached_and_kept",
    "strategies/test_offsets.py": "test_large_ones_are_multiplied_by_tensor_cores",
    "strategies/test_one_pass.py": (
        "test_attention_agrees_with_the_interpreter test_what_is_done_with_the_result_is_in_the_kernel"
    ),
    "strategies/test_one_pass_by_warps.py": (
        "test_attention_by_warps_agrees test_what_auto_takes_is_one_kernel_that_spills_nothing"
    ),
    "strategies/test_open_sizes.py": "test_one_program_is_right_at_all_sizes",
    "strategies/test_pages.py": "test_a_page_is_up_to_date",
    "strategies/test_parts.py": (
        "test_large_scores_do_not_overflow test_one_query_a_head_through_auto"
        " test_parts_are_together_what_f64_gives test_parts_of_other_programs"
        " test_what_a_mask_excludes_is_not_read_in_any_part"
    ),
    "strategies/test_parts_apart.py": (
        "test_parts_are_computed_where_they_are_used test_the_matrix_of_both_halves_is_not_stored"
    ),
    "strategies/test_persistent_passes.py": (
        "test_persistent_blocks_agree_with_the_interpreter test_skewed_steps_agree_with_the_interpreter"
        " test_the_emulator_notices_a_missing_wait"
    ),
    "strategies/test_reduced_columns.py": "test_auto_reduces_columns test_columns_are_reduced",
    "strategies/test_result_views.py": (
        "test_a_layer_may_cut_its_rows_into_heads test_larger_ones_are_tiles"
        " test_small_matrices_are_a_batch_wherever_they_are_put"
    ),
    "strategies/test_results_of_rows.py": "test_rows_give_parts",
    "strategies/test_rounded_grids.py": (
        "test_any_group_and_any_cluster_give_the_product"
        " test_the_last_group_of_raster_order_has_the_rows_that_are_left"
    ),
    "strategies/test_row_results.py": (
        "test_a_row_without_keys_has_minus_infinity test_both_results_are_those_of_f64"
        " test_causal_heads_have_both_results test_large_scores_overflow_in_neither_result"
        " test_other_forms_of_two_results"
    ),
    "strategies/test_row_statistics.py": (
        "test_a_product_stores_only_what_parts_of_its_rows_are_reduced_to"
        " test_rows_of_batches_are_multiplied_once"
        " test_rows_stay_in_shared_memory_up_to_some_depth"
        " test_rows_that_are_reduced_are_not_stored"
        " test_what_no_part_of_a_row_gives_is_computed_of_whole_rows"
    ),
    "strategies/test_scans.py": "test_long_scans_are_several_kernels",
    "strategies/test_schedule_constraints.py": "test_what_is_predicted_is_what_the_kernel_has",
    "strategies/test_schedules.py": (
        "test_the_last_part_may_be_smaller test_tiles_in_any_number_of_dimensions"
    ),
    "strategies/test_spaces.py": (
        "test_a_member_with_every_parameter_changed_preserves_the_meaning"
        " test_members_derive_or_are_refused_by_name"
    ),
    "strategies/test_split_cluster.py": "test_programs_around_a_product_are_exact test_sums_are_exact",
    "strategies/test_split_k.py": "test_slices_of_k_are_blocks_of_one_kernel_and_sums_of_another",
    "strategies/test_tensor_core.py": (
        "test_a_map_that_is_left_only_rearranges test_each_optimisation_can_be_switched_by_itself"
        " test_every_step_of_a_derivation_preserves_the_program test_other_sizes_and_tiles"
        " test_what_the_tiles_do_not_divide_is_rounded_up"
    ),
    "strategies/test_tuned.py": "test_what_the_first_candidates_do_not_take_is_a_kernel_by_another",
    "strategies/test_turns.py": "test_turns_agree_with_the_interpreter",
    "test_examples.py": "test_the_interpreter_agrees_with_numpy",
}


def is_left_out(number: int, cases: int) -> bool:
    """Whether CI leaves out the case of that number of a long test."""
    return number % (2 if cases <= FEW else 3) != 0


def in_turn(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Each value of each axis: as many cases as the longest axis has. Nightly: their product.

    Each round of a shorter axis starts one value further, so that axes are not in step.
    """
    values = [list(axis) for axis in axes]
    if NIGHTLY:
        return list(product(*values))
    cases = range(max(map(len, values)))
    return [tuple(axis[(i + i // len(axis)) % len(axis)] for axis in values) for i in cases]


def every_other(cases: Iterable[Any], start: int = 0, step: int = 2) -> list[Any]:
    """Every second case, or every so many, from the one at `start` on. Nightly: all."""
    return list(cases) if NIGHTLY else list(cases)[start::step]
