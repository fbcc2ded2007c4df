package fleet_test

import (
	"context"
	"errors"
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet"
)

func TestOpenNamesTheImportThatIsMissing(t *testing.T) {
	for url, want := range map[string]string{
		"redis://user:secret@host": `fleet: the program has no engine for redis: import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"`,
		"REDISS://host":            `fleet: the program has no engine for rediss: import _ "github.com/mcpkit/mcpkit-go/fleet/redisfleet"`,
		"bolt:/var/fleet.db":       `fleet: the program has no engine for bolt: import _ "github.com/mcpkit/mcpkit-go/fleet/boltfleet"`,
		"localhost":                `fleet: the address of the engine has no scheme; write one like redis://localhost:6379`,
		"":                         `fleet: the address of the engine has no scheme; write one like redis://localhost:6379`,
	} {
		_, err := fleet.Open(t.Context(), url)
		require.EqualError(t, err, want)
	}
	_, err := fleet.Open(t.Context(), "mysql://user:secret@host")
	require.ErrorContains(t, err, `the program has no engine for "mysql"`)
	require.NotContains(t, err.Error(), "secret")
}

func TestOpenUsesWhatIsRegistered(t *testing.T) {
	refused := errors.New("refused")
	defer fleet.Unregister("test")
	fleet.Register("test", func(_ context.Context, u *url.URL) (fleet.Engine, error) {
		if u.Host != "memory" {
			return nil, refused
		}
		return fleet.NewMemory(fleet.MemoryOptions{}), nil
	})
	e, err := fleet.Open(t.Context(), "test://memory")
	require.NoError(t, err)
	require.NoError(t, e.Close())
	_, err = fleet.Open(t.Context(), "TEST://disk")
	require.ErrorIs(t, err, refused)
	_, err = fleet.Open(t.Context(), "test://user:secret@host:port")
	require.EqualError(t, err, `fleet: the URL of the engine: invalid port ":port" after host`)
	_, err = fleet.Open(t.Context(), "mysql://host")
	require.EqualError(t, err, `fleet: the program has no engine for "mysql"; it has those for test`)

	require.PanicsWithValue(t, "fleet: the scheme test is registered already", func() {
		fleet.Register("test", func(context.Context, *url.URL) (fleet.Engine, error) { return nil, nil })
	})
	require.Panics(t, func() { fleet.Register[fleet.Engine]("other", nil) })
	require.Panics(t, func() { fleet.Register("", func(context.Context, *url.URL) (fleet.Engine, error) { return nil, nil }) })
}
