package duplex

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheBeginningOfAMessageSaysWhoseItIs(t *testing.T) {
	for beginning, want := range map[string]struct {
		id                string
		request, response bool
	}{
		`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"x":"xxxx`: {"7", true, false},
		`{"jsonrpc":"2.0","method":"tools/call","id":"a","params":{"x`:      {`"a"`, true, false},
		`{"id":7,"jsonrpc":"2.0","result":{"content":[`:                     {"7", false, true},
		`{"jsonrpc":"2.0","id":7,"error":{"message":"xx`:                    {"7", false, true},
		`{"result":{"content":[{"type":"text","text":"xxxx`:                 {"", false, true},
		`{"jsonrpc":"2.0","method":"notifications/message","params":{"`:     {"", true, false},
		`{"params":{"id":5,"method":"x","x":"xxx`:                           {"", false, false},
		`{"jsonrpc":"2.0","id":[],"method":"x","params":{`:                  {"", true, false},
		`{"jsonrpc":"2.0","id":12`:                                          {"", false, false},
		`{"jsonrpc":"2.0","id":7}`:                                          {"7", false, false},
		`[{"jsonrpc":"2.0","id":7`:                                          {"", false, false},
		`xxxxxxxx`:                                                          {"", false, false},
		``:                                                                  {"", false, false},
	} {
		h := headOf([]byte(beginning))
		id := ""
		if h.id.IsValid() {
			id = h.id.String()
		}
		require.Equal(t, want.id, id, beginning)
		require.Equal(t, want.request, h.request, beginning)
		require.Equal(t, want.response, h.response, beginning)
	}
}
