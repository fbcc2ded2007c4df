// Package natsserver runs a NATS server with JetStream inside of the process, so that a fleet needs
// no other program. Programs that only connect to servers do not link it.
//
// One server is enough for the replicas of one machine, or for a single process that survives
// restarts. For more machines run three servers, each with the routes of the others, and set
// natsfleet.Options.Replicas to 3: then two of them are enough. A fourth replica and those that
// follow connect to them as clients.
//
// The server syncs each message to the disk before it acknowledges it, unless Options.NoSync is set:
// nothing acknowledged is lost when the process is killed, or the machine loses power.
package natsserver

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/mcpkit/mcpkit-go/fleet"
)

// Options configures a [Server]. The zero value is a server in memory that only this process can
// reach.
type Options struct {
	// Dir is the folder of the streams, which one server uses at a time. If it is "", the server
	// has no files, and all that it stores ends with it.
	Dir string

	// NoSync leaves it to the operating system when to write to the disk, at the latest after two
	// minutes. Writes are faster, and those of the last minutes are lost when the machine loses
	// power.
	NoSync bool

	// MaxBytes limits what the server stores. Zero means three quarters of the free space, or of
	// the memory without Dir.
	MaxBytes int64

	// Listen is the address for clients of other processes, such as "127.0.0.1:4222". If it is "",
	// only this process can connect.
	Listen string

	// Name is the name of the server. It must be unique in a cluster, and the same after a restart.
	Name string

	// Cluster is the name of the cluster. If it is not "", Name, Dir and ClusterListen are
	// required.
	Cluster string

	// ClusterListen is the address for the other servers of the cluster.
	ClusterListen string

	// Routes are the addresses, as in ClusterListen, of the other servers of the cluster. The own
	// one may be among them.
	Routes []string

	// Secret is what clients and other servers must know. It is required if Listen or ClusterListen
	// is reachable from other machines. Without TLS it is sent in the clear.
	Secret string

	// TLS is for connections of clients and of other servers. For the latter it is the
	// configuration of the client side, too, so it needs RootCAs.
	TLS *tls.Config `json:"-"`

	// Logger receives warnings and errors of the server. Nil means slog.Default.
	Logger *slog.Logger `json:"-"`
}

// start is how long a server may take to accept connections.
const start = 10 * time.Second

// A Server is a running server. All methods are safe for concurrent use.
type Server struct {
	server *server.Server
	secret string
	close  func()
}

// Start starts a server. It returns when the server accepts connections; a cluster begins to store
// when most of its servers have found each other, so start them at the same time. ctx limits the
// start only; after 10 seconds it fails in any case.
func Start(ctx context.Context, opts Options) (*Server, error) {
	config, err := opts.config()
	if err != nil {
		return nil, fmt.Errorf("natsserver: %w", err)
	}
	s, err := server.NewServer(config)
	if err != nil {
		return nil, fmt.Errorf("natsserver: %w", err)
	}
	l := &logger{log: cmp.Or(opts.Logger, slog.Default()), fatal: make(chan error, 1)}
	s.SetLoggerV2(l, false, false, false)
	started := &Server{server: s, secret: opts.Secret, close: sync.OnceFunc(func() {
		s.Shutdown()
		s.WaitForShutdown()
	})}
	go s.Start() // returns soon
	for limit := time.Now().Add(start); !s.ReadyForConnections(50 * time.Millisecond); {
		err := ctx.Err()
		select {
		case err = <-l.fatal:
		default:
			if err == nil && time.Now().After(limit) {
				err = errors.New("it takes too long")
			}
		}
		if err != nil {
			started.Close()
			return nil, fmt.Errorf("natsserver: the server did not start: %w", err)
		}
	}
	return started, nil
}

func (o *Options) config() (*server.Options, error) {
	config := &server.Options{
		ServerName: o.Name, JetStream: true, StoreDir: o.Dir, SyncAlways: !o.NoSync, NoSigs: true, DontListen: o.Listen == "",
		MaxPayload: fleet.MaxData, Authorization: o.Secret, TLSConfig: o.TLS, TLS: o.TLS != nil, DisableJetStreamBanner: true,
		ReconnectErrorReports: 60, // one in a minute
	}
	if o.MaxBytes > 0 {
		config.JetStreamMaxStore, config.JetStreamMaxMemory = o.MaxBytes, o.MaxBytes
	}
	if o.Dir == "" {
		config.JetStreamMaxStore = 1 // streams in files are refused
	}
	var err error
	if o.Listen != "" {
		if config.Host, config.Port, err = o.address("Listen", o.Listen); err != nil {
			return nil, err
		}
	}
	if o.Cluster == "" {
		if o.ClusterListen != "" || len(o.Routes) > 0 {
			return nil, errors.New("ClusterListen and Routes need Cluster, the name of the cluster")
		}
		return config, nil
	}
	if o.Name == "" || o.Dir == "" || o.ClusterListen == "" {
		return nil, errors.New("a server of a cluster needs Name, Dir and ClusterListen")
	}
	config.Cluster = server.ClusterOpts{Name: o.Cluster, TLSConfig: o.TLS, TLSTimeout: 2, ConnectRetries: 1 << 30, PoolSize: -1}
	if config.Cluster.Host, config.Cluster.Port, err = o.address("ClusterListen", o.ClusterListen); err != nil {
		return nil, err
	}
	if o.Secret != "" {
		config.Cluster.Username, config.Cluster.Password = "mcpkit", o.Secret
	}
	for _, route := range o.Routes {
		if _, _, err := net.SplitHostPort(route); err != nil {
			return nil, fmt.Errorf("a route: %w", err)
		}
		address := &url.URL{Scheme: "nats-route", Host: route}
		if o.Secret != "" {
			address.User = url.UserPassword("mcpkit", o.Secret)
		}
		config.Routes = append(config.Routes, address)
	}
	return config, nil
}

// address splits the address of an option.
func (o *Options) address(option, text string) (host string, port int, err error) {
	host, digits, err := net.SplitHostPort(text)
	if err == nil {
		port, err = strconv.Atoi(digits)
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s: %w", option, err)
	}
	if ip := net.ParseIP(host); o.Secret == "" && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return "", 0, fmt.Errorf("%s is %s, which others can reach: set Secret", option, text)
	}
	if port == 0 {
		port = server.RANDOM_PORT
	}
	return host, port, nil
}

// Connect returns a connection to the server within this process, which reconnects forever unless opts
// say otherwise. The caller closes it. It fails after Close.
func (s *Server) Connect(opts ...nats.Option) (*nats.Conn, error) {
	all := []nats.Option{nats.InProcessServer(s.server), nats.MaxReconnects(-1), nats.ReconnectWait(100 * time.Millisecond)}
	if s.secret != "" {
		all = append(all, nats.Token(s.secret))
	}
	return nats.Connect("", append(all, opts...)...)
}

// URL returns the URL for clients of other processes; it does not have the secret. It is "" without
// Options.Listen.
func (s *Server) URL() string {
	if s.server.Addr() == nil {
		return ""
	}
	return s.server.ClientURL()
}

// ClusterAddr returns the address of the server for others of its cluster; "" without
// Options.Cluster.
func (s *Server) ClusterAddr() string {
	if addr := s.server.ClusterAddr(); addr != nil {
		return addr.String()
	}
	return ""
}

// Close stops the server and waits until it has. In a cluster, another server takes over first. It may
// be called more than once.
func (s *Server) Close() { s.close() }

// A logger gives what the server logs to a [slog.Logger].
type logger struct {
	log   *slog.Logger
	fatal chan error // has space for one
}

// Noticef does nothing: notices are not meant for the operator of an embedded server.
func (l *logger) Noticef(string, ...any) {}

// Warnf logs a warning.
func (l *logger) Warnf(format string, v ...any) {
	l.log.Warn("natsserver: " + strings.TrimSpace(fmt.Sprintf(format, v...)))
}

// Fatalf keeps the error that Start returns. It does not end the process.
func (l *logger) Fatalf(format string, v ...any) {
	err := fmt.Errorf(format, v...)
	select {
	case l.fatal <- err:
	default:
		l.log.Error("natsserver: " + err.Error())
	}
}

// Errorf logs an error.
func (l *logger) Errorf(format string, v ...any) {
	l.log.Error("natsserver: " + strings.TrimSpace(fmt.Sprintf(format, v...)))
}

// Debugf does nothing.
func (l *logger) Debugf(string, ...any) {}

// Tracef does nothing.
func (l *logger) Tracef(string, ...any) {}
