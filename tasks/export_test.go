package tasks

import "github.com/mcpkit/mcpkit-go/fleet"

// NewFleetStore returns the store of the servers of a fleet.
func NewFleetStore(f *fleet.Fleet) Store { return newFleetStore(f) }
