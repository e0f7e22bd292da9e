package pgtest

// Query plans, as EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) writes them.

// PlanNode is a node of a plan, with what tests ask about it.
type PlanNode struct {
	Type     string     `json:"Node Type"`
	Relation string     `json:"Relation Name"`
	Index    string     `json:"Index Name"`
	Rows     float64    `json:"Actual Rows"`
	Loops    float64    `json:"Actual Loops"`
	Hit      int        `json:"Shared Hit Blocks"`
	Read     int        `json:"Shared Read Blocks"`
	Removed  float64    `json:"Rows Removed by Join Filter"`
	Filtered float64    `json:"Rows Removed by Filter"`
	Plans    []PlanNode `json:"Plans"`
}

// Walk visits the node and all below it.
func (n *PlanNode) Walk(visit func(*PlanNode)) {
	visit(n)
	for i := range n.Plans {
		n.Plans[i].Walk(visit)
	}
}
