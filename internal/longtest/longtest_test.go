package longtest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestLongTestsRunIfTheVariableIsAll(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "all": true, "none": false} {
		t.Setenv("MCPKIT_TEST", value)
		var got *testing.T
		t.Run("long", func(t *testing.T) {
			got = t
			Mark(t, "builds a program")
		})
		require.Equal(t, runs, All(), "%q", value)
		require.Equal(t, !runs, got.Skipped(), "%q", value)
	}
	require.Equal(t, `long, because it builds a program; to run it: MCPKIT_TEST=all go test -run '^TestX$' in its folder, or make test`, reason("TestX", "builds a program"))
}
