package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// Every line that the program writes is JSON, also those of the clients of servers that are away.
func TestEveryLineIsJSON(t *testing.T) {
	t.Parallel()
	const nobody = "127.0.0.1:1"
	worker := exec.CommandContext(t.Context(), os.Args[0])
	worker.Env = append(os.Environ(), asProgram+"=1", "PACKFINDERZ_DATABASE_URL=postgres://u:s3cret@"+nobody+"/db?connect_timeout=2",
		"PACKFINDERZ_REDIS_URL=redis://u:s3cret@"+nobody, "PACKFINDERZ_PUBSUB_PROJECT=pf", "PUBSUB_EMULATOR_HOST="+nobody,
		"PACKFINDERZ_WORKER_LISTEN=127.0.0.1:0")
	var errors bytes.Buffer
	worker.Stderr = &errors
	output, err := worker.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := worker.Start(); err != nil {
		t.Fatal(err)
	}
	redis := false
	for lines := bufio.NewScanner(output); lines.Scan(); {
		line := lines.Text()
		if !json.Valid(lines.Bytes()) || strings.Contains(line, "s3cret") {
			t.Errorf("the worker writes %s", line)
		}
		redis = redis || strings.Contains(line, "the Redis client says")
		if strings.Contains(line, `"msg":"listening"`) {
			if err := worker.Process.Signal(syscall.SIGTERM); err != nil {
				t.Error(err)
			}
		}
	}
	if err := worker.Wait(); err != nil || errors.Len() > 0 {
		t.Errorf("the worker ended with %v, and wrote to standard error: %s", err, errors.String())
	}
	if !redis {
		t.Error("the Redis client said nothing")
	}
}
