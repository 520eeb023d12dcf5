"""What every contract view and column means, with its unit: kept in the file itself as COMMENT ON."""

import duckdb

from lnmeasure.records import QUANTITIES

VIEWS = {
    "by_cell": "One row per measured cell: setup, placement, init, depth, seed. Whole-stack readings and provenance.",
    "by_block": "One row per cell, stack and block: the per-block readings of one seed.",
    "by_depth": "One row per setup, placement, init and depth: means over seeds of whole-stack readings. "
    "A mean is null where any seed's reading is.",
    "profile": "One row per setup, placement, init, depth, stack and block: means over seeds of per-block readings. "
    "A mean is null where any seed's reading is.",
    "comparison": "One row per setup, placement, init and depth: post's top_grad_w2 over this placement's, geometric "
    "mean of per-seed ratios.",
    "slope": "One row per setup, placement, init, quantity and range of depths: log-log slope of the quantity against "
    "depth, fitted per seed over every depth of the range. The default range is 8 to 64.",
    "setup_info": "One row per setup: every constant of the measurement.",
    "placement_info": "One row per placement: where the norm sits.",
    "init_info": "One row per init: how weights are drawn.",
    "coverage": "One row per grid, setup, placement, init and depth a grid asks for: what became of its cells.",
    "refresh_log": "One row per refresh of the store.",
    "prediction": "One row per setup, placement, init, depth, stack, block, quantity and theory: a predicted reading, "
    "of what the theory can express.",
    "path_by_seed": "One row per setup, placement, init, depth, seed and pair of blocks: what one seed's random "
    "cotangents estimate of the Jacobian J of one block's output with respect to an earlier one's.",
    "path_jacobian": "One row per setup, placement, init, depth and pair of blocks: the Jacobian of one block's output "
    "by another's, estimated by random probes. Empty until it is measured.",
    "first_steps": "One row per training run and step. Empty until runs are measured.",
    "first_steps_block": "One row per training run, step, stack and block: per-block readings at a few steps. Empty "
    "until runs are measured.",
    "claim_verdict": "One row per claim: the published value, the measured one, and the verdict, judged anew "
    "whenever the store is published; empty where none of the refreshes judged claims.",
    "claim_evidence": "One row per claim and part: the readings a verdict rests on. A part that is "
    "judged depth by depth has a row per depth.",
    "meta": "One row: which publication of the store this is.",
}

SHARED = {
    "setup": "Name of the set of constants, see setup_info.",
    "placement": "Where the norm sits, see placement_info.",
    "init": "How weights are drawn, see init_info.",
    "depth": "Number of blocks L (a block is attention and FFN).",
    "seed": "Seed of every draw of the cell; the same seed is a paired comparison across placements, inits, depths.",
    "stack": "'decoder' or 'encoder'.",
    "block": "Block from 1 (bottom) to depth (top).",
    "n_seeds": "Number of seeds.",
    "n_seeds_full": "Seeds whose blocks are measured too: bottom_grad_w2 is of these, the rest of the row of n_seeds.",
    "refresh": "Number of the refresh, see refresh_log.",
    "name": "Name used in every other view.",
    "equation": "Update or rule, as in the code's docstring. N is the norm, F a sublayer, L the depth.",
    "source": "Where the equation comes from.",
    "unconfirmed": "What could not be checked against the source; null where all was.",
    "optimiser": "'adam' or 'sgd'.",
    "max_lr": "Largest learning rate of the run.",
    "warmup": "Steps of linear warm-up; 0 is none.",
    "step": "Optimiser step, from 0 (initialisation).",
    "lr": "Learning rate at the step.",
    "claim_id": "Name of the claim, see claim_verdict.",
    "expected": "The published value or relation.",
    "estimate": "The measured value that is compared.",
    "low": "Lower end of its 95 % interval over seeds.",
    "high": "Upper end of its 95 % interval over seeds.",
    "commit": "Git commit of the code, with '+' where files differed from it; null outside a checkout.",
}

OWN = {
    "by_cell": {
        "status": "'ok', or the reason why a reading of the cell is null although it exists ('overflow', 'underflow').",
        "measured_at": "When the cell was measured, UTC.",
        "measurement_version": "Version of the measuring code; cells of another version are measured again.",
        "wall_s": "Wall time of the cell in seconds.",
        "full": "False where only whole-stack readings were measured, so that by_block has no rows of the cell.",
        "peak_mb": "Most memory the measuring process held during the cell, in MB (10^6 bytes); null where unknown.",
    },
    "by_depth": {"top_grad_w2_geomean": "Geometric mean over seeds of top_grad_w2 [nat]."},
    "comparison": {
        "placement": "The placement whose gradient is the denominator; the numerator is post's.",
        "estimate": "Geometric mean over seeds of post's top_grad_w2 over this placement's [1].",
        "low": "Lower end of the 95 % t interval over seeds, computed on logs [1].",
        "high": "Upper end of the 95 % t interval over seeds, computed on logs [1].",
    },
    "slope": {
        "quantity": "'sigma', 'top_grad_w2' or 'bottom_grad_w2' (the first block's grad_w2).",
        "depth_min": "Smallest depth of the fit.",
        "depth_max": "Largest depth of the fit.",
        "n_depths": "Number of depths of the fit; seeds that lack one are left out.",
        "estimate": "Mean over seeds of the slope d ln(quantity) / d ln(depth) [1].",
        "low": "Lower end of the 95 % t interval over seeds of the slope [1].",
        "high": "Upper end of the 95 % t interval over seeds of the slope [1].",
    },
    "setup_info": {
        "width": "Width d of the stream.",
        "heads": "Number of attention heads.",
        "ffn_ratio": "r = d_ff / d.",
        "activation": "Activation of the FFN.",
        "attention": "'causal', 'bidirectional', or 'uniform' (all positions alike, no W_Q and W_K).",
        "output_projection": "Whether attention has W_O.",
        "norm": "'layernorm' or 'rmsnorm', gain 1, bias 0.",
        "eps": "The norm's epsilon, added to the variance.",
        "seq_len": "Sequence length T.",
        "batch": "Sequences in the batch, B.",
        "vocab": "Vocabulary size V.",
        "embedding_std": "Standard deviation of an embedding entry, unless the init draws the whole model.",
        "input": "'tokens' through an embedding, or 'gaussian' vectors.",
        "data": "'uniform' or 'zipf' tokens and targets, drawn independently.",
        "tied_head": "Whether the head is the embedding.",
        "dtype": "Precision of the forward and backward pass; readings are reduced in float64.",
        "encoder": "What blocks also attend to: none, the outputs of a stack as deep, or normal ones (cosine).",
        "encoder_cosine": "Cosine between any two encoder outputs, where encoder is 'cosine'; else 0.",
        "numel_w1": "Entries of W1: divide a gradient norm by the root of this for the rms per entry.",
        "numel_w2": "Entries of W2.",
        "numel_attention": "Entries of each of W_Q, W_K, W_V, W_O.",
    },
    "coverage": {
        "grid": "Name of the grid.",
        "planned": "Cells (seeds) the grid asks for.",
        "ok": "Of these, measured; a reading that overflows counts as measured.",
        "skipped": "Left out on purpose, see reason.",
        "failed": "Raised an error or killed their process, see reason.",
        "missing": "Neither of the three: the next refresh measures them.",
        "reason": "Why cells were skipped or failed; null where none was.",
    },
    "prediction": {
        "stack": "'decoder' or 'encoder'; null for whole-stack quantities.",
        "block": "Block from 1 (bottom) to depth (top); null for whole-stack quantities.",
        "quantity": "Name of the reading that is predicted, with its unit.",
        "theory": "'mean_field', 'lower_bound', 'upper_bound' or 'guide'.",
        "source": "Paper and equation.",
        "value": "The predicted value, in the quantity's unit.",
    },
    "path_by_seed": {
        "from_block": "Block i whose output x_i is varied; 0 is the input of the first block.",
        "to_block": "Block j > i whose output x_j answers.",
        "n_probes": "Random cotangents, one for each sequence of the batch.",
        "square": "||J||_F^2 / (T d), mean over the probes [1].",
        "square_se": "Standard error of square over the probes [1].",
        "trace": "tr J / (T d), mean over the probes [1].",
        "trace_se": "Standard error of trace over the probes [1].",
    },
    "path_jacobian": {
        "from_block": "Block i whose output x_i is varied; 0 is the input of the first block.",
        "to_block": "Block j > i whose output x_j answers.",
        "n_probes": "Random cotangents per seed.",
        "size": "Frobenius norm of d x_j / d x_i over sqrt(T d): 1 for the identity [1].",
        "size_se": "Standard error of size [1].",
        "identity_share": "(tr J)^2 / (T d ||J||_F^2): 1 for a multiple of the identity [1].",
        "identity_share_se": "Standard error of identity_share [1].",
        "trace": "tr J / (T d) [1].",
        "trace_se": "Standard error of trace [1].",
    },
    "first_steps": {"status": "'ok', 'diverged' or 'stalled'."},
    "claim_verdict": {
        "source": "Document and place of the claim.",
        "statement": "The claim in our words.",
        "verdict": "'reproduced', 'contradicted', 'outside its assumptions', 'about training' or 'untested'.",
        "why": "What decided, in figures, and the reason where it is known; of an untested claim, what is lacking.",
        "evidence_sql": "The queries that fetch the readings, one per part; null where nothing measures it yet.",
    },
    "claim_evidence": {
        "part": "Which part of the claim the row is about.",
        "holds": "Whether this part holds; null where readings lack or their interval reaches across the border.",
    },
    "refresh_log": {
        "started": "Start, UTC.",
        "finished": "End of measuring, UTC; null where the refresh was cut off and a later one went on.",
        "planned": "Cells its grids ask for.",
        "measured": "Cells it measured.",
        "reused": "Cells that were there already.",
        "failed": "Cells that raised an error.",
        "package": "Version of lnmeasure.",
        "torch": "Version of torch.",
        "python": "Version of Python.",
        "processor": "Processor model.",
        "threads": "Worker processes, of one thread each.",
        "wall_s": "Wall time of measuring in seconds.",
    },
    "meta": {
        "schema_version": "Version of tables and views; raised when a view changes.",
        "generation": "Number of this publication, from 1.",
        "published_at": "When this file was published, UTC.",
        "package_version": "Version of lnmeasure that published it.",
    },
}

_ENDINGS = {
    "_mean": "Mean over seeds: {}",
    "_low": "Lower end of the 95 % t interval over seeds: {}",
    "_high": "Upper end of the 95 % t interval over seeds: {}",
}


def column_comment(view: str, column: str) -> str:
    """The definition and unit of one column of one contract view. KeyError where nobody has written it."""
    if column in OWN.get(view, {}):
        return OWN[view][column]
    if column in SHARED:
        return SHARED[column]
    for ending, text in _ENDINGS.items():
        if column.endswith(ending):
            return text.format(_definition(column.removesuffix(ending)))
    return _definition(column)


def write_comments(connection: duckdb.DuckDBPyConnection) -> None:
    """Put every comment into the database of a connection that has just run schema.sql."""
    for view, text in VIEWS.items():
        kind = "TABLE" if view == "meta" else "VIEW"
        connection.execute(f"COMMENT ON {kind} {view} IS {_quoted(text)}")
        for (column,) in connection.execute(
            "SELECT column_name FROM duckdb_columns() WHERE table_name = ? AND database_name = current_database()",
            [view],
        ).fetchall():
            connection.execute(f"COMMENT ON COLUMN {view}.{column} IS {_quoted(column_comment(view, column))}")


def _definition(quantity: str) -> str:
    if quantity == "bottom_grad_w2":
        return "grad_w2 of the first block [nat]."
    known = QUANTITIES[quantity]
    return f"{known.definition} [{known.unit}]."


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
