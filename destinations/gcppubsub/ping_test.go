package gcppubsub_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/destinations/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/outboxtest/publishertest"
)

// permissions is the part of the service that the test server lacks.
type permissions struct {
	iampb.UnimplementedIAMPolicyServer
	granted atomic.Bool
}

func (p *permissions) TestIamPermissions(_ context.Context, request *iampb.TestIamPermissionsRequest) (*iampb.TestIamPermissionsResponse, error) {
	if !p.granted.Load() {
		return &iampb.TestIamPermissionsResponse{}, nil
	}
	return &iampb.TestIamPermissionsResponse{Permissions: request.GetPermissions()}, nil
}

// newWithIAM starts a server that knows permissions.
func newWithIAM(t *testing.T, iam *permissions, reactors ...pstest.ServerReactorOption) (url string) {
	t.Helper()
	server := pstest.NewServerWithCallback(0, func(s *grpc.Server) { iampb.RegisterIAMPolicyServer(s, iam) }, reactors...)
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := server.GServer.CreateTopic(t.Context(), &pubsubpb.Topic{Name: pubsubtest.TopicPath(publishertest.Topic)}); err != nil {
		t.Fatal(err)
	}
	return "gcppubsub://" + pubsubtest.Project + "?insecure=true&endpoint=" + server.Addr
}

// Who may publish may not be allowed to ask for the topic, and the other way round.
func TestPingAndPermissions(t *testing.T) {
	t.Parallel()
	for name, reactors := range map[string][]pstest.ServerReactorOption{
		"may ask":     nil,
		"may not ask": {pstest.WithErrorInjection("GetTopic", codes.PermissionDenied, "not yours")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var iam permissions
			publisher := pubsubtest.Open(t, newWithIAM(t, &iam, reactors...))
			err := publisher.PingTopic(t.Context(), publishertest.Topic)
			publishertest.Fates(t, []error{err, publisher.Ping(t.Context())}, "topic missing", "")
			wantText(t, err, "pubsub.topics.publish")
			iam.granted.Store(true)
			if err := publisher.PingTopic(t.Context(), publishertest.Topic); err != nil {
				t.Errorf("with the permission: %v", err)
			}
		})
	}
}

// Where nothing may be asked, that is no evidence: publishing tells.
func TestPingUnasked(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t,
		pstest.WithErrorInjection("GetTopic", codes.PermissionDenied, "not yours"),
		pstest.WithErrorInjection("Publish", codes.PermissionDenied, "not yours"))
	publisher := pubsubtest.Open(t, broker.URL())
	publishertest.Fates(t, publishertest.Publish(t, publisher, ofKeys("a")), "topic missing")
	publishertest.Fates(t, []error{publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), publishertest.Topic)}, "", "")
}

func TestPingTopic(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	publisher := pubsubtest.Open(t, broker.URL())
	err := publisher.PingTopic(t.Context(), "payments")
	publishertest.Fates(t, []error{
		err, publisher.PingTopic(t.Context(), publishertest.Topic), publisher.Ping(t.Context()),
		pubsubtest.Open(t, broker.URL()+"&create=true").PingTopic(t.Context(), "payments"),
	}, "topic missing", "", "", "")
	wantText(t, err, "?create=true")
	broker.Stop(t)
	publishertest.Fates(t, []error{publisher.Ping(t.Context()), publisher.PingTopic(t.Context(), publishertest.Topic)}, "away", "away")
}

// Every answer to a ping has its class.
func TestPingClasses(t *testing.T) {
	t.Parallel()
	for code, want := range map[codes.Code]string{
		codes.Unauthenticated: "misconfigured", codes.Unimplemented: "misconfigured", codes.Unavailable: "away", codes.Internal: "away",
		codes.DeadlineExceeded: "silence", codes.PermissionDenied: "", codes.NotFound: "",
	} {
		broker := pubsubtest.New(t, pstest.WithErrorInjection("GetTopic", code, "as the test wants it"))
		publishertest.Fates(t, []error{pubsubtest.Open(t, broker.URL()).Ping(t.Context())}, want)
	}
}

// A service that hangs does not hold a ping, however often it answered before.
func TestPingHung(t *testing.T) {
	t.Parallel()
	asked, release := make(chan struct{}, 1), make(chan struct{})
	broker := pubsubtest.New(t, pstest.ServerReactorOption{FuncName: "GetTopic", Reactor: onGetTopic(func() {
		asked <- struct{}{}
		<-release
	})})
	t.Cleanup(func() { close(release) })
	publisher := pubsubtest.Open(t, broker.URL())
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pings := make(chan error, 1)
	go func() { pings <- publisher.PingTopic(ctx, publishertest.Topic) }()
	<-asked
	cancel()
	publishertest.Fates(t, []error{publishertest.Ends(t, func() error { return <-pings })}, "silence")
}

func TestMissingTopics(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t)
	broker.CreateTopic(t, "here")
	publisher := pubsubtest.Open(t, broker.URL())
	if missing, err := publisher.MissingTopics(t.Context(), "here", "not-here"); err != nil || !slices.Equal(missing, []string{"not-here"}) {
		t.Errorf("missing are %q, %v", missing, err)
	}
	// Who may only publish cannot tell.
	denied := pubsubtest.New(t, pstest.WithErrorInjection("GetTopic", codes.PermissionDenied, "not yours"))
	if missing, err := pubsubtest.Open(t, denied.URL()).MissingTopics(t.Context(), "not-here"); err != nil || len(missing) > 0 {
		t.Errorf("where it cannot be asked, missing are %q, %v", missing, err)
	}
	broker.Stop(t)
	if _, err := publisher.MissingTopics(t.Context(), "here"); outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("without a connection: %v", err)
	}
	if err := publisher.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := publisher.MissingTopics(t.Context(), "here"); outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("after Close: %v", err)
	}
}
