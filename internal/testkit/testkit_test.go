package testkit

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { VerifyTestMain(m) }

func TestGoroutinesMayEndLate(t *testing.T) {
	before := goleak.IgnoreCurrent()
	late := time.After(800 * time.Millisecond) // longer than goleak itself waits
	go func() { <-late }()
	VerifyNone(t, before)
}

func TestLongTestsRunIfTheVariableIsOne(t *testing.T) {
	for value, runs := range map[string]bool{"": false, "1": true, "0": false} {
		t.Setenv("LONG_TESTS", value)
		var got *testing.T
		t.Run("long", func(t *testing.T) {
			got = t
			MarkLong(t, "builds a program")
		})
		require.Equal(t, runs, LongTests(), "%q", value)
		require.Equal(t, !runs, got.Skipped(), "%q", value)
	}
}
