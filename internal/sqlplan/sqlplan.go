// Package sqlplan tells PostgreSQL's planner what it cannot know, and asks it for its plans.
package sqlplan

// ByIndex leaves the planner, for one transaction, only the plans that read rows in the order
// of an index, where there is one. Of a table that was never analysed it thinks that few rows
// match, and would sort them all.
const ByIndex = `SELECT set_config(name, 'off', true) FROM unnest(ARRAY[
  'enable_seqscan', 'enable_bitmapscan', 'enable_sort', 'enable_incremental_sort', 'enable_hashjoin', 'enable_mergejoin',
  'jit']) AS name`
