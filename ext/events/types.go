package events

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/fleet"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/publicnet"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// An Option of [New] is a [*Type], a [Profile], or a [*Revoker].
type Option interface{ configure(*options) }

// engines are those of the servers that have an option, as keys.
type engines = sync.Map

type options struct {
	profile Profile
	items   []mcpkit.Item
	client  *webhookClient
	joined  []*engines // of types and revokers
}

func (p Profile) configure(o *options) { o.profile = p }

// New returns the option of a server that has events: those of the types, and those of methods that
// are marked with [mcpkit.Event].
func New(opts ...Option) mcpkit.Option {
	o := options{client: newWebhookClient(publicnet.Check)}
	for _, opt := range opts {
		opt.configure(&o)
	}
	return mcpkit.Options(mcpkit.Items(o.items...), mcpkit.ExtendEach(func() mcpkit.Extension {
		return newEngine(o).extension()
	}))
}

// A Type is something that a program emits. P is what is told, a struct, and F the arguments of
// subscriptions, a struct whose tags are those of the arguments of tools. Make one with [NewType], and
// give it to [New].
type Type[P, F any] struct {
	name    string
	match   func(ctx context.Context, payload P, arguments F) bool
	item    *mcpkit.Builder
	engines engines
}

// NewType describes something that a program emits. match decides for each subscription whether it
// gets a payload, in a context with the principal of the subscriber; nil means that all do. It must be
// fast, and may be called concurrently.
func NewType[P, F any](name, description string, match func(ctx context.Context, payload P, arguments F) bool) *Type[P, F] {
	t := &Type[P, F]{name: name, match: match}
	t.item = mcpkit.NewEvent(name, func(ctx context.Context, arguments F) iter.Seq2[P, error] {
		f := ctx.Value(filterKey{}).(*filter)
		f.match = func(ctx context.Context, k *kept) bool {
			var payload P
			return jsonx.Unmarshal(k.Data, &payload) == nil && (t.match == nil || t.match(ctx, payload, arguments))
		}
		return nil
	}).Desc(description)
	return t
}

// Item returns what the server registers, to set tags such as [mcpkit.Builder.Scopes] or
// [mcpkit.Builder.Delivery].
func (t *Type[P, F]) Item() *mcpkit.Builder { return t.item }

func (t *Type[P, F]) configure(o *options) {
	o.items, o.joined = append(o.items, t.item), append(o.joined, &t.engines)
}

// Emit tells the clients of all servers that have the type, and returns when they have kept it: then
// it reaches each subscription at least once, as long as their stores live. What was told already (see
// the package on identity) is not told again.
func (t *Type[P, F]) Emit(ctx context.Context, payload P) error {
	k, err := newKept(reflect.ValueOf(payload))
	if err != nil {
		return err
	}
	err = fmt.Errorf("events: no server has the event %q: give the type to events.New", t.name)
	var faults []error
	for e := range t.engines.Range {
		err = nil
		faults = append(faults, e.(*engine).log(t.name).append(ctx, *k))
	}
	return errors.Join(append(faults, err)...)
}

// newKept returns an occurrence with a payload.
func newKept(v reflect.Value) (*kept, error) {
	payload := v.Interface()
	if v.Kind() != reflect.Pointer { // the methods may be those of a pointer
		p := reflect.New(v.Type())
		p.Elem().Set(v)
		payload = p.Interface()
	}
	k := &kept{Time: time.Now().UTC().Truncate(time.Millisecond)}
	var err error
	if k.Data, err = jsonx.Marshal(payload); err != nil {
		return nil, fmt.Errorf("events: the payload does not encode: %w", err)
	}
	if p, ok := payload.(interface{ EventTime() time.Time }); ok {
		if k.Time = p.EventTime(); k.Time.Year() < 0 || k.Time.Year() > 9999 {
			return nil, fmt.Errorf("events: the time %s has no year of four digits", k.Time)
		}
	}
	if p, ok := payload.(interface{ EventID() string }); ok {
		k.ID = p.EventID()
	} else {
		k.ID = "evt_" + strings.ToLower(rand.Text())
	}
	// The header field webhook-id takes it, and a dot would end it in what is signed.
	if strange := func(r rune) bool { return r <= ' ' || r > '~' || r == '.' }; k.ID == "" || len(k.ID) > 256 || strings.ContainsFunc(k.ID, strange) {
		k.ID = "id_" + fleet.Digest(k.ID)
	}
	return k, nil
}
