package conn_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A faulty response ends the call that it is for, at once, and is not answered: the peer would take
// an error with that ID for the answer to a request of its own.
func TestAFaultyResponseEndsItsCallAndIsNotAnswered(t *testing.T) {
	deep := strings.Repeat("[", 200) + strings.Repeat("]", 200)
	for _, test := range []struct{ name, response, want string }{
		{"nested too deep", `{"jsonrpc":"2.0","id":7,"result":` + deep + `}`, "malformed response: nested deeper than 128 levels"},
		{"nested too deep, the id behind", `{"jsonrpc":"2.0","result":` + deep + `,"id":7}`, "malformed response: nested deeper than 128 levels"},
		{"a member in the wrong case", `{"jsonrpc":"2.0","id":7,"Result":{}}`, `malformed response: member "Result" differs from "result" only by case`},
		{"neither result nor error", `{"jsonrpc":"2.0","id":7}`, "malformed response: it has neither a result nor an error"},
		{"result and error", `{"jsonrpc":"2.0","id":7,"result":{},"error":{"code":1,"message":"x"}}`, "malformed response: it has a result and an error"},
		{"bad UTF-8", `{"jsonrpc":"2.0","id":7,"result":"` + "\xff" + `"}`, `malformed response: invalid JSON: a fault or a repeated name within /result`},
		{"cut off", `{"jsonrpc":"2.0","id":7,"result":{`, `malformed response: invalid JSON: a fault or a repeated name within /result`},
		{"another version", `{"jsonrpc":"1.0","id":7,"result":{}}`, `malformed response: jsonrpc must be "2.0"`},
		{"two ids", `{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`, `malformed response: invalid JSON: duplicate object member name "id"`},
		{"no id that can be read", `{"jsonrpc":"2.0","id":[7],"result":{}}`, "malformed response: id must be a string or a 64-bit integer"},
	} {
		for _, client := range []bool{true, false} {
			t.Run(test.name, func(t *testing.T) {
				served(t, &handler{}, &conn.Options{Client: client}, func(t *testing.T, p *peer) {
					p.link.Session().SetVersion("2025-11-25")
					got := make(chan *jsonrpc.Response, 1)
					go func() {
						resp, err := p.link.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
						require.NoError(t, err)
						got <- resp
					}()
					require.Equal(t, request(7, "ask"), p.receive())
					p.send(test.response)
					synctest.Wait()
					require.Len(t, got, 1, "the call still waits")
					require.Equal(t, test.want, (<-got).Error.Message)
					p.silent()
					p.send(test.response) // late: nobody waits for it
					if client || test.name != "neither result nor error" {
						p.silent()
					} else {
						require.Equal(t, failure(7, -32600, "invalid message: it has no method"), p.receive())
					}
				})
			})
		}
	}
}

func TestAFaultyRequestIsAnsweredAndEndsNoCallOfOurs(t *testing.T) {
	for _, test := range []struct{ name, message, want string }{
		{"params", `{"jsonrpc":"2.0","id":7,"method":"x","params":[]}`, failure(7, -32600, "invalid message: params must be an object")},
		{"params and the beginning of a result", `{"jsonrpc":"2.0","id":7,"method":"x","result":1}`, failure(7, -32600, "invalid message: it has a method and a result or an error")},
	} {
		t.Run(test.name, func(t *testing.T) {
			served(t, &handler{}, &conn.Options{Client: true}, func(t *testing.T, p *peer) {
				got := make(chan *jsonrpc.Response, 1)
				go func() {
					resp, _ := p.link.Do(context.Background(), &jsonrpc.Request{ID: jsonrpc.NumberID(7), Method: "ask"})
					got <- resp
				}()
				require.Equal(t, request(7, "ask"), p.receive())
				p.send(test.message)
				require.Equal(t, test.want, p.receive())
				require.Empty(t, got)
				p.send(answer(7, `1`))
				require.Equal(t, `1`, string((<-got).Result))
			})
		})
	}
}
