package mcpkit_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A greetings has a prompt whose argument is completed slowly.
type greetings struct {
	_ struct {
		Greet mcpkit.Prompt `params:"name" complete:"name=Names"`
		Names mcpkit.Skip
	}
	entered, release chan struct{}
}

// Greet greets somebody.
func (*greetings) Greet(name string) string { return "Greet " + name }

// Names completes names, when it is allowed to.
func (g *greetings) Names(context.Context, string) ([]string, error) {
	close(g.entered)
	<-g.release
	return []string{"Ann"}, nil
}

func TestMiddlewareSeesWhatACompletionIsForWhileItsMethodRuns(t *testing.T) {
	g := &greetings{entered: make(chan struct{}), release: make(chan struct{})}
	srv := newServer(t, g)
	var names []string
	srv.Use(before(func(call *mcpkit.Call) {
		call.SetTimeout(time.Minute) // so that the method has a goroutine of its own
		names = append(names, call.Name(), call.Target())
		go func() {
			<-g.entered
			names = append(names, call.Name(), call.Target()) // as middleware does after a timeout
			close(g.release)
		}()
	}))
	got := modern(t, srv).result("completion/complete", `{"ref":{"type":"ref/prompt","name":"greet"},"argument":{"name":"name","value":"A"}}`)
	require.Contains(t, got, `"values":["Ann"]`)
	require.Equal(t, []string{"greet", "greet", "greet", "greet"}, names)
}
