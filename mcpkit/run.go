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

// Serve makes a [Server] of a service and serves it until the client disconnects or the program is
// told to stop. It is short for [New] and [Server.Serve]. Without [Over] it serves on standard
// input and output.
func Serve(service any, opts ...Option) error {
	s, err := New(service, opts...)
	if err != nil {
		return err
	}
	return s.Serve(context.Background())
}

// Serve starts the services, serves them over the transports (without any, over those of [Over], or
// else stdio), and closes them.
//
// It returns when ctx ends, on SIGINT or SIGTERM, or when a transport has no more clients. Then the
// server takes no new calls, and calls in flight have a limited time to finish. The error is nil
// unless a service does not start or close, or a transport fails. A second signal ends the program
// at once.
func (s *Server) Serve(ctx context.Context, transports ...transport.Transport) error {
	if err := checkTransports("Serve", transports); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	// The next signal ends the program: nobody who sends two wants to wait.
	context.AfterFunc(ctx, stop)

	if err := s.Start(ctx); err != nil {
		return errors.Join(err, s.Close())
	}
	s.warnOfMissing()
	if len(transports) == 0 {
		transports = s.config.transports
	}
	if len(transports) == 0 {
		transports = []transport.Transport{stdio.New(nil)}
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan error, len(transports))
	for _, t := range transports {
		// Ends when the transport does, which cancel causes.
		go func() { results <- t.Serve(ctx, s) }()
	}
	var errs []error
	for range transports {
		errs = append(errs, <-results)
		cancel() // when one ends, the others end, too
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
