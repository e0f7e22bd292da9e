package pubsub

import (
	"fmt"
	"io"
	"log/slog"

	"google.golang.org/grpc/grpclog"
)

// LogTo makes the Pub/Sub client log its errors there instead of to standard error. Only main calls it: the client has
// one log for the whole process.
func LogTo(log *slog.Logger) {
	grpclog.SetLoggerV2(errorLog{grpclog.NewLoggerV2(io.Discard, io.Discard, io.Discard), log})
}

// errorLog logs only errors, as the client does by default.
type errorLog struct {
	grpclog.LoggerV2
	log *slog.Logger
}

func (e errorLog) tell(message string) { e.log.Warn("the Pub/Sub client says", "message", message) }

func (e errorLog) Error(args ...any) { e.tell(fmt.Sprint(args...)) }

func (e errorLog) Errorln(args ...any) {
	line := fmt.Sprintln(args...)
	e.tell(line[:len(line)-1])
}

func (e errorLog) Errorf(format string, args ...any) { e.tell(fmt.Sprintf(format, args...)) }
