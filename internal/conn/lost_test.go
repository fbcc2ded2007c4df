package conn_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/conn"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

func TestLostCallsAreToldFromOtherErrors(t *testing.T) {
	resp := conn.Lost(jsonrpc.NumberID(7))
	require.Equal(t, jsonrpc.NumberID(7), resp.ID)
	require.True(t, conn.IsLost(resp.Error))
	for _, data := range []string{``, `null`, `{}`, `[]`, `{"lost":false}`, `{"lost":1}`, `{"lost"`} {
		require.False(t, conn.IsLost(&jsonrpc.Error{Code: jsonrpc.CodeInternalError, Data: []byte(data)}), data)
	}
	require.False(t, conn.IsLost(&jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Data: []byte(`{"lost":true}`)}))
}
