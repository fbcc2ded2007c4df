package tasks

// Limits sets how many tasks an owner may have, how many there may be, and the bytes of an owner.
func Limits(kept, total, bytes int) Option {
	return func(o *options) error {
		o.kept, o.total, o.bytes = kept, total, bytes
		return nil
	}
}
