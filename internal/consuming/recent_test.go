package consuming

import (
	"strconv"
	"testing"
)

// What is remembered is bounded, and what was counted lately is among it.
func TestRecent(t *testing.T) {
	t.Parallel()
	r := NewRecent[string](50)
	for n := range 1000 {
		r.Add(strconv.Itoa(n))
		r.Add("always")
	}
	if n := r.Count("always"); n != 1000 {
		t.Errorf("it was counted %d times", n)
	}
	if n := len(r.young) + len(r.old); n > 100 {
		t.Errorf("%d are remembered", n)
	}
	r.Forget("always")
	if n := r.Count("always"); n != 0 {
		t.Errorf("after it was forgotten it was counted %d times", n)
	}
}
