// Command notes keeps short notes.
package main

import (
	"log"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Greeter greets people.
type Greeter struct{}

// GreetInput says who is greeted.
type GreetInput struct {
	// The name of the person.
	Name string `json:"name"`
}

// Greet greets somebody by name.
func (*Greeter) Greet(in GreetInput) string { return "Hello, " + in.Name + "!" }

func main() {
	if err := mcpkit.Serve(&Greeter{}); err != nil {
		log.Fatal(err)
	}
}
