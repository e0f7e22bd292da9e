package pubsub

import (
	"fmt"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
)

// LogTo has the client of Pub/Sub log its errors there, and not to standard error. It is for main: the client has one log for the whole
// process.
func LogTo(log *slog.Logger) {
	grpclog.SetLoggerV2(errorLog{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard), log})
}

// errorLog passes over all but errors, as the client does by default.
type errorLog struct {
	grpclog.LoggerV2
	log *slog.Logger
}

func (e errorLog) tell(message string) { e.log.Warn("the Pub/Sub client says", "message", message) }

// Error is as fmt.Sprint.
func (e errorLog) Error(args ...any) { e.tell(fmt.Sprint(args...)) }

// Errorln is as fmt.Sprintln, without the end of the line.
func (e errorLog) Errorln(args ...any) {
	line := fmt.Sprintln(args...)
	e.tell(line[:len(line)-1])
}

// Errorf is as fmt.Sprintf.
func (e errorLog) Errorf(format string, args ...any) { e.tell(fmt.Sprintf(format, args...)) }
