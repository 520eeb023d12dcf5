"""Rules that the rows of every store keep, each as a query that counts what breaks it."""

import tempfile
from functools import cache
from pathlib import Path

import duckdb

from lnmeasure.records import QUANTITIES
from lnmeasure.store.shape import ORDER, create


def broken_invariants(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """In words, every rule that the rows of a store break."""
    return [words for words, query in _INVARIANTS.items() if connection.execute(query).fetchone() != (0,)]


def redefined(connection: duckdb.DuckDBPyConnection) -> list[str]:
    """In words, every view and macro that is not the schema's. For a file that this version of DuckDB wrote."""
    wanted = _wanted()
    there = dict(connection.execute(_DEFINITIONS).fetchall())
    return [f"{name} is not what the schema says" for name in sorted(wanted) if there.get(name) != wanted[name]]


@cache
def _wanted() -> dict[str, str]:
    """Definitions of the schema as a published file gives them back: DuckDB rewrites them when it stores them."""
    with tempfile.TemporaryDirectory(prefix="lnmeasure-") as folder:
        file = Path(folder, "schema.duckdb")
        with duckdb.connect(file, config={"storage_compatibility_version": "v1.2.0"}) as fresh:
            create(fresh)
        with duckdb.connect(file, read_only=True) as stored:
            return dict(stored.execute(_DEFINITIONS).fetchall())


_DEFINITIONS = (
    "SELECT view_name, sql FROM duckdb_views() WHERE NOT internal "
    "UNION ALL SELECT function_name, macro_definition FROM duckdb_functions() WHERE NOT internal"
)


def _twice(table: str, key: str) -> str:
    return f"SELECT count(*) FROM (SELECT 1 FROM {table} GROUP BY {key} HAVING count(*) > 1)"


def _not_finite(table: str, per_block: bool) -> str:
    columns = [name for name, known in QUANTITIES.items() if known.per_block == per_block]
    finite = " AND ".join(f"isfinite(coalesce({column}, 0))" for column in columns)
    return f"SELECT count(*) FROM {table} WHERE NOT ({finite})"


_CELL = ORDER["cell"]
_DECIDED = "verdict IN ('reproduced', 'contradicted', 'outside its assumptions')"
_INVARIANTS = {
    "cells are there twice": _twice("cell", _CELL),
    "keys of cells are there twice": _twice("cell", "key"),
    "blocks of a cell are there twice": _twice("block_reading", ORDER["block_reading"]),
    "a grid asks for a cell twice": _twice("planned", "grid, key"),
    "failures are there twice": _twice("failure", "key"),
    "measured cells are recorded as failed": "SELECT count(*) FROM failure SEMI JOIN cell USING (key)",
    "blocks belong to no cell": f"SELECT count(*) FROM block_reading ANTI JOIN cell USING ({_CELL})",
    "cells lack blocks": f"SELECT count(*) FROM cell LEFT JOIN (SELECT {_CELL}, count(*) AS n FROM block_reading "
    f"WHERE stack = 'decoder' GROUP BY {_CELL}) USING ({_CELL}) "
    "WHERE kind = 'readings' AND " + 'coalesce(n, 0) <> CASE WHEN "full" THEN depth ELSE 0 END',
    "cells lack paths": f"SELECT count(*) FROM cell LEFT JOIN (SELECT {_CELL}, count(*) AS n FROM path_reading "
    f"GROUP BY {_CELL}) USING ({_CELL}) WHERE coalesce(n, 0) <> CASE kind WHEN 'paths' THEN depth * (depth + 1) / 2 "
    "ELSE 0 END",
    "paths belong to no cell": f"SELECT count(*) FROM path_reading ANTI JOIN cell USING ({_CELL})",
    "paths are there twice": _twice("path_reading", ORDER["path_reading"]),
    "paths lead downwards or out of their stack": "SELECT count(*) FROM path_reading WHERE NOT (0 <= from_block AND "
    "from_block < to_block AND to_block <= depth)",
    "readings of paths are not finite": "SELECT count(*) FROM path_reading WHERE NOT (isfinite(coalesce(square, 0)) "
    "AND isfinite(coalesce(square_se, 0)) AND isfinite(coalesce(trace, 0)) AND isfinite(coalesce(trace_se, 0)))",
    "planned cells are neither ok, skipped, failed nor missing": "SELECT count(*) FROM coverage "
    "WHERE planned <> ok + skipped + failed + missing",
    "readings of cells are not finite": _not_finite("cell", per_block=False),
    "readings of blocks are not finite": _not_finite("block_reading", per_block=True),
    "cells belong to a setup that is not described": "SELECT count(*) FROM cell ANTI JOIN setup ON name = setup",
    "blocks lie outside their stack": "SELECT count(*) FROM block_reading WHERE block NOT BETWEEN 1 AND depth OR stack "
    "NOT IN ('decoder', 'encoder')",
    "sizes are negative": "SELECT count(*) FROM cell WHERE least(sigma, top_grad_w2, loss, embedding_rms, wall_s) < 0",
    "quantiles of Student's t are missing": "SELECT (count(*) <> 1000 OR count(t) <> 999)::INTEGER FROM t_quantile",
    "depths of the default slope are missing": "SELECT (count(*) <> 7)::INTEGER FROM slope_depth "
    "WHERE (depth_min, depth_max) = (8, 64)",
    "claims have two verdicts": _twice("verdict", "claim_id"),
    "evidence is there twice": _twice("evidence", ORDER["evidence"]),
    "verdicts are none of the five words": "SELECT count(*) FROM verdict WHERE verdict NOT IN ('reproduced', "
    "'contradicted', 'outside its assumptions', 'about training', 'untested')",
    "evidence belongs to no verdict": "SELECT count(*) FROM evidence ANTI JOIN verdict USING (claim_id)",
    "verdicts rest on no evidence": f"SELECT count(*) FROM verdict WHERE {_DECIDED} AND (n_seeds IS NULL OR claim_id "
    "NOT IN (SELECT claim_id FROM evidence WHERE holds IS NOT NULL))",
    "verdicts say other than their evidence": "SELECT count(*) FROM verdict WHERE "
    "verdict IN ('contradicted', 'outside its assumptions') AND claim_id NOT IN "
    "(SELECT claim_id FROM evidence WHERE NOT holds)",
    "evidence has an answer and no readings": "SELECT count(*) FROM evidence WHERE holds IS NOT NULL "
    "AND (estimate IS NULL OR n_seeds IS NULL)",
    "readings are null and their cell says ok": "SELECT count(*) FROM by_cell WHERE status = 'ok' AND "
    "(top_grad_w2 IS NULL OR loss IS NULL OR embedding_rms IS NULL)",  # sigma is absent where no last norm is
}
