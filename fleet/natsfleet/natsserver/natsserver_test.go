package natsserver_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/fleet/natsfleet/natsserver"
	"github.com/mcpkit/mcpkit-go/internal/leaktest"
)

func TestMain(m *testing.M) { leaktest.VerifyTestMain(m) }

func Example() {
	server, err := natsserver.Start(context.Background(), natsserver.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer server.Close()
	conn, err := server.Connect()
	if err != nil {
		log.Fatal(err)
	}
	defer conn.Close()
	fmt.Println(conn.Status())
	// Output: CONNECTED
}

func TestOptionsThatAreWrongAreReported(t *testing.T) {
	for want, opts := range map[string]natsserver.Options{
		"Listen is 0.0.0.0:0, which others can reach: set Secret":         {Listen: "0.0.0.0:0"},
		"Listen is :0, which others can reach: set Secret":                {Listen: ":0"},
		"Listen: address 1: missing port":                                 {Listen: "1"},
		"a server of a cluster needs Name, Dir and ClusterListen":         {Cluster: "c"},
		"ClusterListen and Routes need Cluster, the name of the cluster":  {Routes: []string{"127.0.0.1:1"}},
		"ClusterListen is 10.0.0.1:0, which others can reach: set Secret": {Cluster: "c", Name: "n", Dir: t.TempDir(), ClusterListen: "10.0.0.1:0"},
		"a route: address nowhere: missing port":                          {Cluster: "c", Name: "n", Dir: t.TempDir(), ClusterListen: "127.0.0.1:0", Routes: []string{"nowhere"}},
	} {
		_, err := natsserver.Start(t.Context(), opts)
		require.ErrorContains(t, err, "natsserver: "+want)
	}
}

func TestOnlyThoseWithTheSecretConnect(t *testing.T) {
	s, err := natsserver.Start(t.Context(), natsserver.Options{Listen: "127.0.0.1:0", Secret: "s3cret", Logger: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer s.Close()
	_, err = nats.Connect(s.URL())
	require.ErrorIs(t, err, nats.ErrAuthorization)
	nc, err := nats.Connect(s.URL(), nats.Token("s3cret"))
	require.NoError(t, err)
	nc.Close()
	nc, err = s.Connect()
	require.NoError(t, err)
	nc.Close()
}

func TestAPortThatIsTakenIsReported(t *testing.T) {
	s, err := natsserver.Start(t.Context(), natsserver.Options{Listen: "127.0.0.1:0"})
	require.NoError(t, err)
	defer s.Close()
	_, err = natsserver.Start(t.Context(), natsserver.Options{Listen: strings.TrimPrefix(s.URL(), "nats://")})
	require.ErrorContains(t, err, "natsserver: the server did not start")
	require.ErrorContains(t, err, "address already in use")
}

func TestWithoutListenThereIsNoAddress(t *testing.T) {
	s, err := natsserver.Start(t.Context(), natsserver.Options{})
	require.NoError(t, err)
	defer s.Close()
	require.Empty(t, s.URL())
	require.Empty(t, s.ClusterAddr())
}
