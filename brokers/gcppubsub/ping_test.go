package gcppubsub_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	"cloud.google.com/go/iam/apiv1/iampb"
	"cloud.google.com/go/pubsub/v2/pstest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/brokers/gcppubsub/pubsubtest"
	"github.com/packfinderz/outbox/publishertest"
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

// Who may publish may not be allowed to ask for the topic, and the other way round.
func TestPingAndPermissions(t *testing.T) {
	t.Parallel()
	var iam permissions
	server := pstest.NewServerWithCallback(0, func(s *grpc.Server) { iampb.RegisterIAMPolicyServer(s, &iam) },
		pstest.WithErrorInjection("GetTopic", codes.PermissionDenied, "not yours"),
		pstest.WithErrorInjection("Publish", codes.PermissionDenied, "not yours"))
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	publisher := pubsubtest.Open(t, "gcppubsub://p?insecure=true&endpoint="+server.Addr)
	if err := publisher.Ping(t.Context()); err != nil {
		t.Errorf("before anything was denied: %v", err)
	}
	publishertest.Fates(t, publishertest.Publish(t, publisher, ofKeys("a")), "away")
	err := publisher.Ping(t.Context())
	wantText(t, err, "pubsub.topics.publish")
	if outbox.Classify(err) != outbox.ClassUnavailable {
		t.Errorf("a denied ping: %v", err)
	}
	iam.granted.Store(true)
	if err := publisher.Ping(t.Context()); err != nil {
		t.Errorf("with the permission: %v", err)
	}
}

// Where permissions cannot be asked for, the topic has to be visible again.
func TestPingAfterDenial(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t,
		pstest.WithErrorInjection("GetTopic", codes.PermissionDenied, "not yours"),
		pstest.WithErrorInjection("Publish", codes.PermissionDenied, "not yours"))
	publisher := pubsubtest.Open(t, broker.URL())
	publishertest.Fates(t, publishertest.Publish(t, publisher, ofKeys("a")), "away")
	wantText(t, publisher.Ping(t.Context()), "not yours")
}

func TestPingRefused(t *testing.T) {
	t.Parallel()
	broker := pubsubtest.New(t, pstest.WithErrorInjection("GetTopic", codes.Unauthenticated, "expired"))
	wantText(t, pubsubtest.Open(t, broker.URL()).Ping(t.Context()), "expired")
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
