package client

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The largest patterns that fit into a schema take gigabytes and half a minute to compile.
func TestPatternsOfServersAreNotCompiled(t *testing.T) {
	pattern := strings.Repeat("(a|b)", 50_000)
	schema := fmt.Sprintf(`{"type":"object","properties":{"a":{"type":"string","pattern":"%s"},"b":{"type":"integer"}}}`, pattern)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	faults, err := newOutputSchema([]byte(schema), false).check([]byte(`{"a":"x","b":"x"}`))
	runtime.ReadMemStats(&after)
	require.NoError(t, err)
	require.Equal(t, []string{`at "/b": got string, want integer`}, faults, "the other keywords are checked")
	require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16<<20))
}

func TestPatternsAreCheckedOnlyIfTheProgramTrustsTheServer(t *testing.T) {
	const combined = "it combines patterns with other keywords, and patterns of servers are ignored; see CheckPatterns"
	for _, test := range []struct {
		schema, output string
		ignored, fault string // why outputs are not checked, and the fault that CheckPatterns finds
		alwaysOK       bool
	}{
		{schema: `{"pattern":"^a"}`, output: `"b"`, fault: `at "": 'b' does not match pattern '^a'`},
		{schema: `{"properties":{"pattern":{"type":"string"}}}`, output: `{"pattern":"b"}`, alwaysOK: true},
		{schema: `{"not":{"pattern":"^a"}}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"oneOf":[{"pattern":"^a"},{"pattern":"^b"}]}`, output: `"b"`, ignored: combined, alwaysOK: true},
		{schema: `{"patternProperties":{"^a":{"type":"string"}}}`, output: `{"a":1}`, ignored: combined, fault: `at "/a": got number, want string`},
	} {
		faults, err := newOutputSchema([]byte(test.schema), false).check([]byte(test.output))
		require.Empty(t, faults, test.schema)
		if test.ignored == "" {
			require.NoError(t, err, test.schema)
		} else {
			require.EqualError(t, err, test.ignored, test.schema)
		}
		faults, err = newOutputSchema([]byte(test.schema), true).check([]byte(test.output))
		require.NoError(t, err)
		if test.alwaysOK {
			require.Empty(t, faults, test.schema)
		} else {
			require.Equal(t, []string{test.fault}, faults)
		}
	}
}
