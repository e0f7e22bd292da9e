package cli

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"os"
	"strings"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/spf13/cobra"

	"github.com/packfinderz/outbox"
	"github.com/packfinderz/outbox/admin"
	"github.com/packfinderz/outbox/cmd/outbox/internal/dest"
	"github.com/packfinderz/outbox/ops/doctor"
)

// usersVariable holds the lines of a credentials file, for those who keep secrets in the environment.
const usersVariable = "OUTBOX_CONSOLE_USERS"

// consoleConnections is how many connections a console has: pages ask one query after the other, and each running
// change needs one.
const consoleConnections = 8

// consoleFlags say who may use a console, and how.
type consoleFlags struct {
	credentials, prefix, userHeader, roleHeader string
	certificate, key                            string
	proxies                                     []string
	mask                                        bool
}

// flags adds the flags, with a prefix of the command's.
func (f *consoleFlags) flags(cmd *cobra.Command, word string) {
	s := cmd.Flags()
	s.StringVar(&f.credentials, word+"credentials", "", "`file` with users and tokens; see outbox console user, or "+usersVariable)
	s.BoolVar(&f.mask, word+"mask-payloads", false, "hide payloads and headers from viewers")
	s.StringVar(&f.prefix, word+"prefix", "", "`path` under which a proxy shows the console, such as /outbox")
	s.StringSliceVar(&f.proxies, word+"trust-proxy", nil, "`address` or network of a trusted reverse proxy; may be repeated")
	s.StringVar(&f.userHeader, word+"user-header", "", "`header` in which that proxy sends the user's name")
	s.StringVar(&f.roleHeader, word+"role-header", "", "`header` in which it sends the user's role, viewer or operator (default: all are viewers)")
	s.StringVar(&f.certificate, word+"tls-cert", "", "`file` with the certificate to serve TLS")
	s.StringVar(&f.key, word+"tls-key", "", "`file` with the certificate's key")
}

func (f *consoleFlags) access() (admin.Access, error) {
	access := admin.Access{MaskPayloads: f.mask}
	lines := os.Getenv(usersVariable)
	if f.credentials != "" {
		content, err := os.ReadFile(f.credentials)
		if err != nil {
			return access, usagef("read the credentials: %w", err)
		}
		lines = string(content)
	}
	var err error
	if access.Credentials, err = admin.ParseCredentials(strings.NewReader(lines)); err != nil {
		return access, &usageError{err}
	}
	access.Proxy.UserHeader, access.Proxy.RoleHeader = f.userHeader, f.roleHeader
	if access.Proxy.Addresses, err = admin.ParseProxyAddresses(f.proxies); err != nil {
		err = usagef("--trust-proxy: %w", err)
	}
	return access, err
}

// tls reads the certificate; nil for none.
func (f *consoleFlags) tls() (*tls.Config, error) {
	if f.certificate == "" && f.key == "" {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(f.certificate, f.key)
	if err != nil {
		return nil, usagef("read the certificate and its key: %w", err)
	}
	return &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}, nil
}

// consoleServer is a listening console, with what belongs to it.
type consoleServer struct {
	*admin.Server
	console *admin.Console
	pool    *pgxpool.Pool
}

// close stops it, in reverse order.
func (s *consoleServer) close() error {
	err := s.Close()
	s.console.Close()
	s.pool.Close()
	return err
}

type consoleOptions struct {
	listen, subscription string
	// publisher is where a queue table's events are replayed to; nil for nowhere.
	publisher    outbox.Publisher
	defaultTopic string
	log          *slog.Logger
}

// serve opens a console on what the flags name, with its own connections.
func (f *consoleFlags) serve(ctx context.Context, from *source, options consoleOptions) (_ *consoleServer, err error) {
	access, err := f.access()
	if err != nil {
		return nil, err
	}
	certificate, err := f.tls()
	if err != nil {
		return nil, err
	}
	found, conn, err := from.locate()
	if err != nil {
		return nil, err
	}
	pool, err := connectPool(ctx, conn, consoleConnections)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			pool.Close()
		}
	}()
	list, err := outboxes(ctx, found, pool, options.subscription)
	if err != nil {
		return nil, &usageError{classify(err, found.ifMissing())}
	}
	config := admin.Config{Doctor: doctor.Config{Layout: from.layout}, Prefix: f.prefix, Access: access, Logger: options.log}
	for _, one := range list {
		is := one.Describe()
		config.Outboxes = append(config.Outboxes, admin.Outbox{
			Name: cmp.Or(is.Subscription, is.Table), Outbox: one, Publisher: options.publisher, DefaultTopic: options.defaultTopic,
		})
	}
	console, err := admin.New(config)
	if err != nil {
		return nil, &usageError{err}
	}
	server, err := console.Listen(options.listen, certificate)
	if err != nil {
		console.Close()
		return nil, &usageError{err}
	}
	return &consoleServer{server, console, pool}, nil
}

func newConsole(a *app) *cobra.Command {
	var from source
	var flags consoleFlags
	var logs logFlags
	var to string
	var options consoleOptions
	cmd := &cobra.Command{
		Use:   "console",
		Short: "Serve the web console and the JSON API",
		Long: `Serves web pages that show what waits, what is dead and why, and that retry, replay, hold and
release events. The JSON API beside them is described at /api/openapi.json.

It listens on the loopback. On another address it starts only with credentials, or with a
proxy that authenticates users. outbox console user and outbox console token make the lines
of a credentials file.

Every flag can be set in the environment: --credentials as OUTBOX_CREDENTIALS, and so on.`,
		Example: `  outbox console --from postgres://localhost/shop
  outbox console --from postgres://localhost/shop --layout modkit --to nats://localhost:4222
  outbox console --from postgres://localhost/shop --listen :8090 --credentials console.users`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			if err := fromEnvironment(cmd.Flags()); err != nil {
				return err
			}
			if options.log, err = logs.logger(a); err != nil {
				return err
			}
			if to != "" {
				destination, err := dest.Open(to, a.Out)
				if err != nil {
					return &usageError{err}
				}
				defer func() { err = errors.Join(err, destination.Close()) }()
				options.publisher = destination
			}
			server, err := flags.serve(cmd.Context(), &from, options)
			if err != nil {
				return err
			}
			if err := a.printf("the console is at %s\n", server.URL); err != nil {
				return errors.Join(err, server.close())
			}
			select {
			case <-cmd.Context().Done():
			case <-server.Done():
			}
			return server.close()
		},
	}
	from.flags(cmd)
	flags.flags(cmd, "")
	logs.flags(cmd)
	s := cmd.Flags()
	s.StringVar(&options.listen, "listen", "127.0.0.1:8090", "`address` to serve on")
	s.StringVar(&options.subscription, "subscription", "", "`name` of one subscription of a stream (default: all)")
	s.StringVar(&to, "to", "", "destination `URL` for replays of a queue table; see outbox destinations")
	s.StringVar(&options.defaultTopic, "topic-default", "", "`topic` of replayed events that have none")
	cmd.AddCommand(newConsoleUser(a), newConsoleToken(a))
	return cmd
}
