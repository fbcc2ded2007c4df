package client_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/client"
)

// A malformed response ends its call at once with an error that says what is wrong. The call does not
// wait for its timeout, and the client does not answer the response.
func TestAFaultyResponseEndsItsCall(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ name, response, err string }{
		{"nested too deeply", `{"jsonrpc":"2.0","id":$ID,"result":{"x":` + strings.Repeat("[", 3000) + strings.Repeat("]", 3000) + `}}`, "nested deeper than"},
		{"Result", `{"jsonrpc":"2.0","id":$ID,"Result":{}}`, `member "Result" differs from "result" only by case`},
		{"bad UTF-8", `{"jsonrpc":"2.0","id":$ID,"result":{"x":"` + "\xff" + `"}}`, "invalid JSON"},
	} {
		t.Run(test.name, func(t *testing.T) {
			onEveryStage(t, func(t *testing.T, s stage, p *puppet, c *client.Client) {
				if s.name == "memory" { // its responses are values
					return
				}
				call := ask(t.Context(), c)
				r := <-p.heard
				p.say(strings.ReplaceAll(test.response, "$ID", r.ID.String()))
				got := <-call
				if s.name == "websocket" && test.name == "bad UTF-8" {
					// This ends the connection (RFC 6455, section 8.1).
					require.ErrorContains(t, got.err, "the peer sent a message that is not UTF-8")
					return
				}
				require.ErrorContains(t, got.err, test.err)
				require.NotErrorIs(t, got.err, client.ErrRejected)
				next := ask(t.Context(), c)
				for r = <-p.heard; r.IsNotification(); r = <-p.heard { // the cancellation of the stream, in modern versions over HTTP
				}
				p.answer(r, "next")
				require.Equal(t, told{"next", nil}, <-next)
			}, client.Timeout(0))
		})
	}
}
