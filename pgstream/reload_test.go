package pgstream

import "testing"

// TestStatementAfterReload has a statement of a lost session reach the server when the store has connected again and read its
// cursors, and before it opens a window itself: the statement opens none behind its back.
func TestStatementAfterReload(t *testing.T) {
	t.Parallel()
	s := sharedStage(t, 1)
	store := s.open(Config{})
	s.idle(store)
	s.emit("a")
	numbers, fences := store.owned()
	store.reading <- struct{}{}
	store.disconnect()
	err := store.connect(t.Context())
	if err == nil {
		err = store.reload(t.Context())
	}
	store.doneReading()
	if err != nil {
		t.Fatal(err)
	}
	windows, err := s.pool.Exec(t.Context(), store.sql.open, DefaultSubscription, numbers, fences, 10, nil)
	if err != nil {
		t.Fatal(err)
	}
	if windows.RowsAffected() > 0 {
		t.Error("a statement of the lost session opened a window")
	}
	s.drain(store)
	s.judge("")
}
