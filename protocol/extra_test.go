package protocol_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestToolResultsKeepUnknownMembers(t *testing.T) {
	const wire = `{"content":[],"structuredContent":{"a":1},"isError":true,"a":[1, 2],"com.example/cost":{"tokens":7},"_meta":{"k":1}}`
	var r protocol.CallToolResult
	require.NoError(t, json.Unmarshal([]byte(wire), &r))
	require.Len(t, r.Extra, 2)
	out, err := r.AppendJSON(nil)
	require.NoError(t, err)
	require.JSONEq(t, wire, string(out))
	require.NoError(t, json.Unmarshal([]byte(`{"content":[]}`), &r))
	require.Nil(t, r.Extra)
	out, err = (&protocol.CallToolResult{Extra: map[string]json.RawMessage{"isError": json.RawMessage("true")}}).AppendJSON(nil)
	require.NoError(t, err)
	require.JSONEq(t, `{"content":[]}`, string(out), "what the protocol has is not said in another way")
}
