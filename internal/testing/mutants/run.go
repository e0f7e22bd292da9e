package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// limit is how long a test may take to notice its fault.
const limit = 2 * time.Minute

// checkAll reports every patch that does not apply.
func checkAll(ctx context.Context, t tree, patches []patch) error {
	var problems []error
	for _, p := range patches {
		err := t.apply(ctx, p, "--check")
		if err != nil && t.apply(ctx, p, "--check", "--reverse") == nil {
			err = fmt.Errorf("%s: the fault is in the code already; take it out", p.name)
		}
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}

// each runs jobs in the copies, one at a time in each, and returns what they returned.
func each[J, R any](trees []tree, jobs []J, do func(tree, J) R) []R {
	results := make([]R, len(jobs))
	next := make(chan int)
	var workers sync.WaitGroup
	for _, t := range trees {
		workers.Go(func() {
			for i := range next {
				results[i] = do(t, jobs[i])
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// counter numbers what is done, to show how far a run is. It is safe for concurrent use.
type counter struct {
	of   int
	done atomic.Int64
}

func (c *counter) next() string {
	return fmt.Sprintf("%*d/%d", len(strconv.Itoa(c.of)), c.done.Add(1), c.of)
}

// passAll demands that every named test exists, and passes without a fault.
func passAll(ctx context.Context, trees []tree, patches []patch) error {
	tests := make(map[string][]patch)
	var packages []string
	for _, p := range patches {
		if tests[p.pkg] == nil {
			packages = append(packages, p.pkg)
		}
		tests[p.pkg] = append(tests[p.pkg], p)
	}
	fmt.Printf("faults to try: %d; packages whose tests have to pass first: %d\n", len(patches), len(packages))
	done := counter{of: len(packages)}
	return errors.Join(each(trees, packages, func(t tree, pkg string) error {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var names []string
		for _, p := range tests[pkg] {
			names = append(names, p.top())
		}
		output, err := t.test(ctx, pkg, "-timeout", "10m", "-run", "^("+strings.Join(names, "|")+")$")
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return fmt.Errorf("without a fault the tests of %s fail:\n%s", pkg, tail(output))
		}
		var missing []error
		for _, p := range tests[pkg] {
			if !hasResult(output, "PASS", p.test) {
				missing = append(missing, fmt.Errorf("%s: package %s has no test %s, or skips it", p.name, pkg, p.test))
			}
		}
		if len(missing) == 0 {
			fmt.Printf("%s  passes without a fault: %s\n", done.next(), pkg)
		}
		return errors.Join(missing...)
	})...)
}

// killAll tries every fault.
func killAll(ctx context.Context, trees []tree, patches []patch) ([]verdict, error) {
	done := counter{of: len(patches)}
	verdicts := each(trees, patches, func(t tree, p patch) verdict {
		v := verdict{patch: p, why: "interrupted"}
		if ctx.Err() != nil {
			return v
		}
		if err := t.apply(ctx, p); err != nil {
			v.why = err.Error()
			return v
		}
		start := time.Now()
		output, err := t.test(ctx, p.pkg, "-timeout", limit.String(), "-run", p.selector())
		if ctx.Err() != nil {
			return v
		}
		v.took = time.Since(start)
		v.killed, v.why = judge(p, output, err)
		if !v.killed {
			v.output = tail(output)
		}
		if err := t.apply(ctx, p, "--reverse"); err != nil {
			v.killed, v.why = false, err.Error()
		}
		fmt.Printf("%s  %s\n", done.next(), v)
		return v
	})
	return verdicts, ctx.Err()
}
