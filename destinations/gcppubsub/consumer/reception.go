package consumer

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/packfinderz/outbox"
)

// silence is how long a connection may take before that is logged.
const silence = 2 * time.Second

var errSilent = status.Error(codes.Unavailable, "it cannot be reached")

// reception knows whether messages can be received, and logs once when they cannot.
type reception struct {
	logger *slog.Logger
	stop   context.Context // ends when nothing more is to be received
	// opened counts the streams that were opened.
	opened atomic.Int64
	mu     sync.Mutex
	told   codes.Code // of what was told last; OK if nothing
	why    error      // nothing can be received now
}

// errNotYet is the state of a reception that has not begun.
var errNotYet = errors.New("nothing has been received yet")

// check is why nothing can be received; nil if something can.
func (r *reception) check() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.why == nil && r.opened.Load() == 0 {
		return errNotYet
	}
	return r.why
}

// failed tells that nothing is received, and why; once for each reason.
func (r *reception) failed(err error) {
	if errors.Is(err, context.Canceled) || status.Code(err) == codes.Canceled {
		return // the consumer stops
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = err
	r.warn(err)
}

// tell logs why nothing will be received, though the stream is still open.
func (r *reception) tell(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.warn(err)
}

// warn logs a reason once. It wants the lock.
func (r *reception) warn(err error) {
	if code := status.Code(err); code != r.told {
		r.told = code
		r.logger.Warn("nothing can be received; waiting for Pub/Sub", "error", outbox.ErrorText(err))
	}
}

func (r *reception) over() {
	r.opened.Add(1)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.why = nil
	if r.told != codes.OK {
		r.told = codes.OK
		r.logger.Info("messages are received again")
	}
}

// watch opens the stream of messages. The client would ask again after ever longer pauses, and find the service
// minutes after it is back; watch waits for the connection, which is tried every two seconds.
func (r *reception) watch(
	ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, options ...grpc.CallOption,
) (grpc.ClientStream, error) {
	late := time.AfterFunc(silence, func() { r.failed(errSilent) })
	defer late.Stop()
	inner, cancel := context.WithCancel(ctx)
	release := context.AfterFunc(r.stop, cancel)
	context.AfterFunc(ctx, func() { release() })
	stream, err := open(inner, desc, conn, method, append(options, grpc.WaitForReady(true))...)
	if err != nil {
		cancel()
		return nil, err
	}
	r.over()
	return &stoppable{ClientStream: stream, client: ctx, stop: r.stop}, nil
}

// stoppable is a stream of messages that ends with the consumer's context without telling the client. The client
// would leave it open, unread, until all handlers are done, and the service would deliver there again what was
// given back; if the client knew of the end, it would acknowledge nothing more.
type stoppable struct {
	grpc.ClientStream
	client, stop context.Context
}

// RecvMsg blocks after the stop, until the client is done.
func (s *stoppable) RecvMsg(message any) error {
	err := s.ClientStream.RecvMsg(message)
	if err == nil || s.stop.Err() == nil {
		return err
	}
	<-s.client.Done()
	return s.client.Err()
}

// SendMsg is a no-op after the stop.
func (s *stoppable) SendMsg(message any) error {
	if s.stop.Err() == nil {
		return s.ClientStream.SendMsg(message)
	}
	return nil
}
