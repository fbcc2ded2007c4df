package mcpkit

import (
	"context"
	"errors"
	"fmt"
	"os/signal"
	"reflect"
	"syscall"

	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// Serve makes a [Server] of a service and serves it until the peer is gone or the program is told to stop; see
// [Server.Serve]. Without [Over] it serves on standard input and output.
func Serve(service any, opts ...ServeOption) error {
	c, err := newConfig(service, opts)
	if err != nil {
		return err
	}
	s, err := newServer(c)
	if err != nil {
		return err
	}
	return s.Serve(context.Background(), c.transports...)
}

// Serve starts the services, serves them over the transports (stdio if there are none), and closes them.
//
// It returns when ctx ends, on SIGINT or SIGTERM, or when a transport has no more peers; then no new calls are taken and
// those in flight have a bounded time to finish. All of these are nil; a second signal ends the program at once. An error
// is one of starting, of a transport, or of closing.
func (s *Server) Serve(ctx context.Context, transports ...transport.Transport) error {
	if err := checkTransports("Serve", transports); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The next signal is the program's end again: whoever sends two does not want to wait.
	context.AfterFunc(ctx, stop)

	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	s.warnOfMissing()
	if len(transports) == 0 {
		transports = []transport.Transport{stdio.New(nil)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(transports))
	for _, t := range transports {
		// Ends when the transport does: cancel sees to it.
		go func() { results <- t.Serve(ctx, s) }()
	}
	var errs []error
	for range transports {
		errs = append(errs, <-results)
		cancel() // one that ends takes the others with it
	}
	return errors.Join(append(errs, s.Close())...)
}

func checkTransports(where string, transports []transport.Transport) error {
	for i, t := range transports {
		if v := reflect.ValueOf(t); !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil() {
			return fmt.Errorf("mcpkit: %s: transport %d is nil; give for example stdio.New(nil)", where, i+1)
		}
	}
	return nil
}
