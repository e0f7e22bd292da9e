// Package web runs the HTTP server of an example.
package web

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

const (
	headerTimeout = 10 * time.Second
	// patience is how long requests may take to end.
	patience = 10 * time.Second
)

// Serve answers requests while work runs, which is given the server's URL. An address with port 0
// is one that is free. Requests that are being served when work returns are let end.
func Serve(ctx context.Context, address string, handler http.Handler, work func(url string) error) error {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	err = work("http://" + listener.Addr().String())

	// The end of ctx is why work returns; the requests are still to have their answers.
	ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), patience)
	defer cancel()
	err = errors.Join(err, server.Shutdown(ending))
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, ended)
	}
	return err
}
