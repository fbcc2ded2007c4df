package mcptest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

// A Firing is what the event fired tells.
type Firing struct {
	Pot string `json:"pot"`
}

// docs:begin events

func TestFiringsAreTold(t *testing.T) {
	fired := events.NewType("fired", "A pot was fired.", func(_ context.Context, f, want Firing) bool { return f == want })
	s := mcptest.New(t, nil, mcpkit.Name("kiln", "1"), events.New(fired))
	next := s.Events("fired", Firing{"vase"})
	require.NoError(t, fired.Emit(t.Context(), Firing{"cup"}))
	require.NoError(t, fired.Emit(t.Context(), Firing{"vase"}))
	next().JSON(`{"pot":"vase"}`)
}

// docs:end events
