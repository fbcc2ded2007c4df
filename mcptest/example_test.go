package mcptest_test

import (
	"testing"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
)

// Greeter greets people.
type Greeter struct {
	_ mcpkit.Info `name:"greeter" version:"1.0.0"`
}

// Greet greets somebody by name.
func (*Greeter) Greet(in struct {
	Name string `json:"name"`
}) string {
	return "Hello, " + in.Name + "!"
}

// In a test, New calls the service as a client does, and reports differences to t.
func Example() {
	_ = func(t *testing.T) { // TestGreet
		s := mcptest.New(t, &Greeter{})
		s.Call("greet", map[string]string{"name": "Ann"}).OK().Text("Hello, Ann!")
		s.Call("greet", nil).ErrorContains("/name: missing")
	}
}

// EachVersion runs a test on each version of the protocol, and over each transport.
func ExampleEachVersion() {
	_ = func(t *testing.T) { // TestGreetOnEachVersion
		mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, &Greeter{}) }, func(t *testing.T, s *mcptest.Server) {
			s.Call("greet", map[string]string{"name": "Ann"}).OK().Text("Hello, Ann!")
		})
	}
}
