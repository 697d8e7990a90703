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
    "codegen/test_dual_products.py": "test_a_fold_of_triples_by_warpgroups_is_exact",
    "codegen/test_epilogues.py": "test_an_epilogue_is_fused_and_exact",
    "codegen/test_fragments.py": (
        "test_products_are_exact test_products_of_quad_pairs_are_exact test_the_text_compiles"
    ),
    "codegen/test_fused.py": "test_tiles_may_stick_out test_what_is_done_with_a_product_is_fused_and_exact",
    "codegen/test_indices.py": "test_nothing_is_divided_in_loops",
    "codegen/test_loaded_ahead.py": (
        "test_bytes_and_threads_are_those_of_the_kernel"
        " test_programs_are_exact_under_schedules_drawn_at_random"
        " test_several_matrices_results_and_products_are_exact"
    ),
    "codegen/test_pipeline.py": "test_derived_products_are_exact",
    "codegen/test_rings.py": "test_a_ring_goes_on_from_tile_to_tile",
    "codegen/test_roles.py": (
        "test_blocks_of_a_cluster_load_for_each_other test_operands_lie_along_k_or_across"
        " test_programs_around_a_product_are_exact test_the_ring_goes_on_from_tile_to_tile"
        " test_warpgroups_take_turns"
    ),
    "codegen/test_shipped_kernels.py": "test_a_strategy_makes_kernels_for_its_targets",
    "codegen/test_skipping.py": (
        "test_what_a_mask_excludes_is_not_read test_what_both_of_two_masks_exclude_is_not_read"
    ),
    "codegen/test_staging.py": "test_steps_of_k_are_shared_out_among_warps",
    "codegen/test_waits.py": "test_programs_are_exact",
    "codegen/test_warpgroup_operands.py": "test_a_function_of_the_first_operand_is_applied_in_registers",
    "strategies/test_auto.py": (
        "test_a_program_is_cut_where_a_value_must_be_complete"
        " test_bytes_with_a_number_beside_their_row_are_an_operand"
        " test_every_program_is_right_at_every_size test_there_is_a_choice_for_every_gpu"
    ),
    "strategies/test_batch.py": (
        "test_a_warp_may_have_several_fragments_of_rows"
        " test_fragments_of_odd_rows_come_from_padded_ones test_operands_of_32_bits_are_multiplied"
        " test_rows_come_by_the_widest_vectors_that_divide_them"
    ),
    "strategies/test_batch_in_bulk.py": (
        "test_few_matrices_are_tiles_or_come_by_threads"
        " test_fragments_of_swizzled_rows_are_loaded_without_conflicts"
        " test_products_of_any_sizes_are_exact"
        " test_rows_that_start_in_few_banks_are_swizzled_and_exact test_runs_in_padded_rows_are_exact"
        " test_tiles_of_few_matrices_are_copied_as_wide_as_rows_allow"
    ),
    "strategies/test_batches_in_kernels.py": "test_functions_of_all_elements_are_functions_of_rows",
    "strategies/test_beside.py": "test_rows_are_reduced_by_those_who_hold_them",
    "strategies/test_columns.py": "test_rows_are_reduced_in_the_loop_of_their_product",
    "strategies/test_example_schedules.py": "test_a_variant_is_exact",
    "strategies/test_found_products.py": "test_products_are_multiplied_by_tensor_cores",
    "strategies/test_groups.py": (
        "test_any_schedule_takes_groups"
        " test_rows_of_uneven_groups_are_multiplied_by_the_matrix_of_their_group"
        " test_the_last_tiles_are_finer_ones_of_a_second_kernel"
    ),
    "strategies/test_in_one_sum.py": (
        "test_schedules_of_one_product_take_sums_of_two test_sums_are_exact_in_one_ring"
    ),
    "strategies/test_matmul_schedules.py": "test_a_composition_derives_what_the_parameters_do",
    "strategies/test_one_pass.py": "test_what_is_done_with_the_result_is_in_the_kernel",
    "strategies/test_one_pass_by_warps.py": "test_attention_by_warps_agrees",
    "strategies/test_parts.py": "test_one_query_a_head_through_auto test_parts_are_together_what_f64_gives",
    "strategies/test_persistent_passes.py": "test_persistent_blocks_agree_with_the_interpreter",
    "strategies/test_reduced_columns.py": "test_auto_reduces_columns test_columns_are_reduced",
    "strategies/test_result_views.py": (
        "test_a_layer_may_cut_its_rows_into_heads test_small_matrices_are_a_batch_wherever_they_are_put"
    ),
    "strategies/test_row_results.py": (
        "test_a_row_without_keys_has_minus_infinity test_both_results_are_those_of_f64"
    ),
    "strategies/test_split_cluster.py": "test_programs_around_a_product_are_exact",
    "strategies/test_tensor_core.py": (
        "test_each_optimisation_can_be_switched_by_itself"
        " test_every_step_of_a_derivation_preserves_the_program test_other_sizes_and_tiles"
    ),
    "strategies/test_tuned.py": "test_what_the_first_candidates_do_not_take_is_a_kernel_by_another",
    "strategies/test_turns.py": "test_turns_agree_with_the_interpreter",
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
