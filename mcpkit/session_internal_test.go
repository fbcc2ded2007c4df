package mcpkit

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestAgreementsKeepWhatServersUse(t *testing.T) {
	for declared, kept := range map[string]string{
		`{}`: `{}`,
		`{"roots":{},"sampling":{},"elicitation":{}}`:                          `{"roots":{},"sampling":{},"elicitation":{}}`,
		`{"roots":{"listChanged":false},"elicitation":{"form":{"x":1}}}`:       `{"roots":{},"elicitation":{"form":{}}}`,
		`{"roots":{"listChanged":true},"sampling":{"tools":{},"context":{}}}`:  `{"roots":{"listChanged":true},"sampling":{"context":{},"tools":{}}}`,
		`{"elicitation":{"url":{}},"extensions":{"a.b/c":{"x":1},"d.e/f":{}}}`: `{"elicitation":{"url":{}},"extensions":{"a.b/c":{}}}`,
	} {
		a := agreement{Version: protocol.V20250618, Client: protocol.Implementation{Name: "x" + strings.Repeat("ä", 40), Version: "1"}}
		require.NoError(t, json.Unmarshal([]byte(declared), &a.Capabilities))
		extensions := []string{"other/x", "a.b/c"}
		text := a.bytes(extensions)
		require.LessOrEqual(t, len(text), 148)
		got, err := readAgreement(text, extensions)
		require.NoError(t, err)
		require.Equal(t, protocol.V20250618, got.Version)
		require.Equal(t, protocol.Implementation{Name: "x" + strings.Repeat("ä", 31), Version: "1"}, got.Client, "64 bytes, without a part of a character")
		again, err := json.Marshal(got.Capabilities)
		require.NoError(t, err)
		require.JSONEq(t, kept, string(again))
	}
}

func TestDamagedAgreementsAreRefused(t *testing.T) {
	whole := (&agreement{Version: protocol.V20250326, Client: protocol.Implementation{Name: "n", Version: "v"}}).bytes(nil)
	for n := range len(whole) {
		_, err := readAgreement(whole[:n], nil)
		require.EqualError(t, err, "mcpkit: the session is not one that this server stored")
	}
	_, err := readAgreement(bytes.Replace(whole, []byte(`"v":`), []byte(`"v":9`), 1), nil)
	require.Error(t, err)
}

func TestAgreementsAlwaysFitIntoAnID(t *testing.T) {
	var extensions []string
	a := agreement{Version: protocol.V20251125, Client: protocol.Implementation{Name: strings.Repeat("\x00", 64), Version: strings.Repeat("v", 64)}}
	a.Capabilities.Extensions = map[string]protocol.Object{}
	for n := range 40 {
		extensions = append(extensions, fmt.Sprintf("example.com/%d", n))
		a.Capabilities.Extensions[extensions[n]] = protocol.Object{}
	}
	text := a.bytes(extensions)
	require.LessOrEqual(t, len(text), 148)
	got, err := readAgreement(text, extensions)
	require.NoError(t, err)
	require.Len(t, got.Capabilities.Extensions, 8)
}
