package middleware_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
)

func TestRecoverReportsPanics(t *testing.T) {
	var reported []any
	srv := newServer(t, mcpkit.NewTool("panics", func() { panic("in the method") }), mcpkit.NewTool("breaks", ok), mcpkit.NewTool("fails", func() error { return errors.New("x") }))
	srv.Use(middleware.Recover(func(_ context.Context, call *mcpkit.Call, p *mcpkit.PanicError) {
		require.NotEmpty(t, p.Stack)
		reported = append(reported, call.Name(), p.Value)
	}), middleware.When(onTool("breaks"), func(mcpkit.Handler) mcpkit.Handler {
		return func(context.Context, *mcpkit.Call) (mcpkit.Result, error) { panic("in between") }
	}))
	for _, name := range []string{"panics", "breaks", "fails"} {
		require.Contains(t, modern(t, srv).toolText(t.Context(), name), "internal error (ref ")
	}
	require.Equal(t, []any{"panics", "in the method", "breaks", "in between"}, reported)
}

func TestRecoverReportsPanicsThatErrorCodesWraps(t *testing.T) {
	var reported []any
	srv := newServer(t, mcpkit.NewTool("panics", func() { panic("oops") }))
	srv.Use(middleware.Recover(func(_ context.Context, _ *mcpkit.Call, p *mcpkit.PanicError) { reported = append(reported, p.Value) }), middleware.ErrorCodes())
	modern(t, srv).call(t.Context(), "tools/call", `{"name":"panics"}`)
	require.Equal(t, []any{"oops"}, reported)
}
