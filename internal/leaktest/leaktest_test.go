package leaktest_test

import (
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func TestGoroutinesMayEndLate(t *testing.T) {
	before := goleak.IgnoreCurrent()
	late := time.After(800 * time.Millisecond) // longer than goleak itself waits
	go func() { <-late }()
	leaktest.VerifyNone(t, before)
}
