package jsonrpc_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestReadBeginningOfMalformedMessages(t *testing.T) {
	for beginning, want := range map[string]struct {
		id                string
		request, response bool
	}{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"xxxx`:             {"7", true, false},
		`{"jsonrpc":"2.0","method":"tools/call","id":"a","params":{"x`:                  {`"a"`, true, false},
		`{"id":7,"jsonrpc":"2.0","result":{"content":[`:                                 {"7", false, true},
		`{"jsonrpc":"2.0","id":7,"error":{"message":"xx`:                                {"7", false, true},
		`{"result":{"content":[{"type":"text","text":"xxxx`:                             {"", false, true},
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"`:                 {"", true, false},
		`{"params":{"id":5,"method":"x","x":"xxx`:                                       {"", false, false},
		`{"jsonrpc":"2.0","id":[],"method":"x","params":{`:                              {"", true, false},
		`{"jsonrpc":"2.0","id":12`:                                                      {"", false, false},
		`{"jsonrpc":"2.0","id":7}`:                                                      {"7", false, false},
		`[{"jsonrpc":"2.0","id":7`:                                                      {"", false, false},
		`{"jsonrpc":"2.0","id":7,"Result":{}}`:                                          {"7", false, true},
		"{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":\"\xff\"}":                            {"7", false, true},
		"{\"result\":\"\xff\",\"id\":7}":                                                {"7", false, true},
		`{"id":7,"result":` + strings.Repeat("[", 200) + strings.Repeat("]", 200) + `}`: {"7", false, true},
		`{"id":7,"result":` + strings.Repeat("[", 20_000):                               {"7", false, true},
		`{"jsonrpc":"2.0","id":7,"id":8,"result":{}}`:                                   {"", false, true},
		`{"jsonrpc":"2.0","id":7,"method":"x","result":{}}`:                             {"7", true, false},
		`xxxxxxxx`: {"", false, false},
		``:         {"", false, false},
	} {
		h := jsonrpc.ReadBeginning([]byte(beginning))
		id := ""
		if h.ID.IsValid() {
			id = h.ID.String()
		}
		require.Equal(t, want.id, id, beginning)
		require.Equal(t, want.request, h.Request, beginning)
		require.Equal(t, want.response, h.Response, beginning)
	}
}
