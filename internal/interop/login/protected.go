package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"github.com/mcpkit/mcpkit-go/oauth/oauthtest"
)

// serveProtected runs an authorization server and a program that serves a protected resource at
// addr, until a signal ends both. The program gets the address and the authorization server as
// JSON.
func serveProtected(addr, program string) error {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	const id, secret = "server", "interop-secret"
	as, err := oauthtest.Start(&oauthtest.Options{Clients: []oauthtest.Client{{ID: id, Secret: secret}}, Opaque: true})
	if err != nil {
		return err
	}
	defer as.Close()
	task, err := json.Marshal(map[string]any{"Protect": addr, "Authorizer": map[string]string{
		"Issuer": as.Issuer, "Introspection": as.Endpoint("introspection"), "ClientID": id, "Secret": secret,
	}})
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, program, string(task))
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 5 * time.Minute
	if err := cmd.Run(); err != nil && (ctx.Err() == nil || cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != 0) {
		return fmt.Errorf("%s: %w", program, err)
	}
	return nil
}
