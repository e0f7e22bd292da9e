package outbox

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"time"
)

// Routes returns the status of the destination, and of the topics that are closed or named in the configuration.
func (r *Relay) Routes() []RouteStatus { return r.routes.list() }

// Available reports whether all Routes are open.
func (r *Relay) Available() bool {
	return !slices.ContainsFunc(r.Routes(), func(s RouteStatus) bool { return !s.Open })
}

// Check pings the destination and the topics named in the configuration, and returns what is wrong. Waiting does
// not fix an error for which IsMisconfigured is true. Check does not affect a running relay.
func (r *Relay) Check(ctx context.Context) error {
	if err := r.ping(ctx, ""); err != nil {
		return fmt.Errorf("the destination cannot be used: %w", err)
	}
	var problems []error
	for _, topic := range r.config.namedTopics() {
		if err := r.ping(ctx, topic); err != nil {
			problems = append(problems, fmt.Errorf("topic %s: %w", topic, err))
		}
	}
	return errors.Join(problems...)
}

// namedTopics returns the topics named in the configuration.
func (c *RelayConfig) namedTopics() []string {
	names := make(map[string]bool)
	for _, topic := range c.Topics {
		names[topic] = true
	}
	for _, route := range c.Registry {
		names[route.Topic] = true
	}
	names[c.DefaultTopic] = true
	delete(names, "")
	return slices.Sorted(maps.Keys(names))
}

// keepRoutes pings closed routes until they answer, and open ones after a while without a sign of life.
func (r *Relay) keepRoutes(ctx context.Context) {
	for {
		due, wait := r.routes.due(time.Now())
		for _, topic := range due {
			err := r.ping(ctx, topic)
			if ctx.Err() != nil {
				return
			}
			if err != nil {
				r.log.Debug("a route does not answer", "route", (&route{topic: topic}).status().Name(), "error", ErrorText(err))
			}
			if news := r.routes.answered(topic, time.Now(), err); news != nil {
				r.report(*news)
			}
			r.Nudge()
		}
		if len(due) > 0 {
			continue
		}
		if !r.pause(ctx, wait, r.routes.news) {
			return
		}
	}
}

// ping checks a topic, or the whole destination. It succeeds if the publisher cannot ping: a few messages will
// tell.
func (r *Relay) ping(ctx context.Context, topic string) (err error) {
	ctx, cancel := context.WithTimeout(ctx, min(pingTimeout, r.config.PublishTimeout))
	defer cancel()
	defer func() {
		if value := recover(); value != nil {
			err = panicError(value)
		}
	}()
	if topic == noTopic {
		return nil // it cannot be pinged: the next trial tells
	}
	if topic != "" {
		if pinger, ok := r.config.Publisher.(TopicPinger); ok {
			return pinger.PingTopic(ctx, topic)
		}
		return nil
	}
	if pinger, ok := r.config.Publisher.(Pinger); ok {
		return pinger.Ping(ctx)
	}
	return nil
}

// askAfterSilence pings the destination after messages timed out. If the ping fails too, the destination hangs, and
// the timeouts say nothing about the messages.
func (r *Relay) askAfterSilence(ctx context.Context, a *attempt) {
	if !slices.ContainsFunc(a.errs, isSilence) || slices.ContainsFunc(a.errs, isAway) {
		return
	}
	asked := map[string]error{"": r.ping(ctx, "")}
	for i, err := range a.errs {
		if !isSilence(err) {
			continue
		}
		if asked[""] != nil {
			a.errs[i] = Unavailable(fmt.Errorf("%w; a ping failed, too: %w", err, asked[""]))
			continue
		}
		topic := a.topic(i)
		if _, known := asked[topic]; !known {
			asked[topic] = r.ping(ctx, topic)
		}
		if asked[topic] != nil {
			a.errs[i] = TopicUnavailable(fmt.Errorf("%w; a ping of its topic failed, too: %w", err, asked[topic]))
		}
	}
}

// isSilence reports whether a message timed out and the publisher did not say more.
func isSilence(err error) bool {
	return err != nil && !isUntried(err) && Classify(err) == ClassUnclear && find[*UnclearError](err) == nil
}

// report logs routes that opened or closed: once each, not for every event.
func (r *Relay) report(news ...change) {
	for _, c := range news {
		if c.doubts > 0 {
			r.log.Warn("many events get no good answer while others get through: none is blamed, and no attempt is counted",
				"route", c.Name(), "events", c.doubts, "error", ErrorText(c.err))
			continue
		}
		if c.Open {
			r.log.Info("the route is open again", "route", c.Name(), "closed_for", c.lasted.Round(time.Millisecond).String(), "given_back", c.events)
		} else {
			r.log.LogAttrs(context.Background(), slog.LevelWarn, "the route is closed: its events wait, and no attempt is counted",
				slog.String("route", c.Name()), slog.String("error", ErrorText(c.err)))
		}
		each(r.config.Hooks, func(h RouteHook) { h.OnRoute(c.RouteStatus) })
	}
}
