package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	. "github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestModernRequestsAreRecognized(t *testing.T) {
	const key = `"io.modelcontextprotocol/protocolVersion"`
	for _, test := range []struct {
		name, header, params string
		want                 bool
	}{
		{name: "nothing said", params: `{}`},
		{name: "no params"},
		{name: "version in _meta", params: `{"_meta":{` + key + `:"2026-07-28"}}`, want: true},
		{name: "unknown version in _meta", params: `{"_meta":{` + key + `:"v999"}}`, want: true},
		{name: "legacy version in _meta", params: `{"_meta":{` + key + `:"2025-11-25"}}`, want: true},
		{name: "mistyped version in _meta", params: `{"_meta":{` + key + `:7}}`, want: true},
		{name: "escaped key", params: `{"_meta":{"io.modelcontextprotocol\/protocolVersion":"2026-07-28"}}`, want: true},
		{name: "other _meta", params: `{"_meta":{"progressToken":1}}`},
		{name: "key beside _meta", params: `{` + key + `:"2026-07-28"}`},
		{name: "key deeper in _meta", params: `{"_meta":{"a":{` + key + `:"2026-07-28"}}}`},
		{name: "_meta is not an object", params: `{"_meta":[` + key + `]}`},
		{name: "_meta is null", params: `{"_meta":null}`},
		{name: "legacy header", header: "2025-06-18", params: `{}`},
		{name: "legacy header, modern _meta", header: "2025-06-18", params: `{"_meta":{` + key + `:"2026-07-28"}}`, want: true},
		{name: "modern header", header: "2026-07-28", params: `{}`, want: true},
		{name: "unknown header", header: "v999", want: true},
	} {
		t.Run(test.name, func(t *testing.T) {
			wire := `{"jsonrpc":"2.0","id":1,"method":"ping"}`
			if test.params != "" {
				wire = `{"jsonrpc":"2.0","id":1,"method":"ping","params":` + test.params + `}`
			}
			m, bad := jsonrpc.Decode([]byte(wire))
			require.Nil(t, bad)
			require.Equal(t, test.want, IsModern(test.header, m.Request.Param("_meta")))
		})
	}
}
